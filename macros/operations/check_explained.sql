{% macro check_explained(trigger_name) %}
    {#- Stop a question about what no run has made, or about a trigger that nobody knows. -#}
    {%- if load_relation(ref('explanations')) is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: nothing can be explained yet, since no run was published in schema '
            ~ target.schema ~ ': land deliveries and start `dbt build`'
        ) -%}
    {%- endif -%}
    {%- if trigger_name is not none -%}
        {%- set in_seed = run_query(
            'select trim(trigger_name) from ' ~ ref('triggers') ~ ' order by 1'
        ).columns[0].values() -%}
        {#- one that has left the seed has what it decided -#}
        {%- set decided = 'select 1 from ' ~ ref('document_status') ~ ' where trigger_name = '
            ~ sql_text(trigger_name) ~ ' limit 1' -%}
        {%- if trigger_name not in in_seed and run_query(decided).rows | length == 0 -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
                ~ in_seed | join(', ')
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
