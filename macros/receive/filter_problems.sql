{% macro filter_problems() %}
    {#- A line for each filter that Spark cannot use over the columns of a delivery. -#}
    {%- set deliveries = source('landing', 'deliveries') | string -%}
    {%- set problems = [] -%}
    {%- for row in run_query(
        "select trigger_name, position, filter from " ~ conditions_of_seed()
        ~ " where filter is not null order by trigger_name, position"
    ).rows -%}
        {%- set problem = adapter.exactly_once.filter_problem(row[2], deliveries) -%}
        {%- if problem -%}
            {%- do problems.append(
                'seed trigger_conditions, condition ' ~ row[1] ~ ' of trigger ' ~ row[0]
                ~ ': the filter ' ~ row[2] ~ ' cannot be used, correct it: ' ~ problem
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(problems) }}
{% endmacro %}
