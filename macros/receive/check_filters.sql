{% macro check_filters() %}
    {%- set deliveries = source('landing', 'deliveries') | string -%}
    {%- for row in run_query(
        "select trigger_name, position, filter from " ~ ref('trigger_conditions')
        ~ " where trim(filter) != ''"
    ).rows -%}
        {%- set problem = adapter.exactly_once.filter_problem(row[2], deliveries) -%}
        {%- if problem -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed trigger_conditions, condition ' ~ row[1] ~ ' of trigger '
                ~ row[0] ~ ': the filter ' ~ row[2] ~ ' cannot be used: ' ~ problem
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}
