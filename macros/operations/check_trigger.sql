{% macro check_trigger(trigger_name) %}
    {#- Stop an operation that names a trigger which the seed does not have; make the landed tables
        where no run has made them yet. -#}
    {%- set known = run_query(
        'select trim(trigger_name) from ' ~ ref('triggers') ~ ' order by 1'
    ).columns[0].values() -%}
    {%- if trigger_name not in known -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
            ~ known | join(', ')
        ) -%}
    {%- endif -%}
    {%- do adapter.exactly_once.describe(graph) -%}
    {%- do adapter.exactly_once.ensure_tables() -%}
{% endmacro %}
