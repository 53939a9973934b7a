{% macro filter_problems() %}
    {#- A line for each filter and each key that Spark cannot use over the columns of a delivery. -#}
    {%- set deliveries = source('landing', 'deliveries') | string -%}
    {%- set problems = [] -%}
    {%- set expressions -%}
        select
            concat(
                'seed trigger_conditions, condition ', position, ' of trigger ', trigger_name,
                ': the filter '
            ) as row_name,
            filter as expression,
            true as is_filter
        from {{ conditions_of_seed() }}
        where filter is not null
        union all
        select
            concat('seed triggers, trigger ', trigger_name, ': the key '),
            key,
            false
        from (
            select
                trigger_name,
                {{ seed_value('key', 'string', 'key') }} as key
            from {{ ref('triggers') }}
        )
        where key is not null
        order by row_name, expression
    {%- endset -%}
    {%- for row in run_query(expressions).rows -%}
        {%- set problem = adapter.exactly_once.expression_problem(row[1], deliveries, row[2]) -%}
        {%- if problem -%}
            {%- do problems.append(row[0] ~ row[1] ~ ' cannot be used, correct it: ' ~ problem) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(problems) }}
{% endmacro %}
