{% macro check_trigger(trigger_name, or_decided=false) %}
    {#- Stop an operation that names a trigger which the seed does not have, and has decided nothing
        where or_decided. -#}
    {%- if load_relation(ref('triggers')) is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: the lake has no triggers yet: start `dbt build` once'
        ) -%}
    {%- endif -%}
    {%- set seeded -%}
        select trim(trigger_name) from {{ ref('triggers') }} order by 1
    {%- endset -%}
    {%- set decided -%}
        select 1 from {{ ref('document_status') }}
        where trigger_name = {{ sql_text(trigger_name) }}
        limit 1
    {%- endset -%}
    {%- set known = run_query(seeded).columns[0].values() -%}
    {%- if trigger_name not in known
        and not (or_decided and run_query(decided).rows | length > 0) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
            ~ known | join(', ')
        ) -%}
    {%- endif -%}
{% endmacro %}
