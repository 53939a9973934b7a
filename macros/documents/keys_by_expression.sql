{% macro keys_by_expression(expressions) -%}
    {#- What the key expressions of triggers give for a landed row: a map from trigger to key.
        expressions: pairs of trigger and expression, from the seed, since it is SQL of the user's. -#}
    {%- if expressions -%}
        map(
            {%- for expression in expressions %}
            {{ sql_text(expression.trigger_name) }}, cast((
                {{ adapter.exactly_once.filter_sql(expression.key) }}
            ) as string){{ ',' if not loop.last }}
            {%- endfor %}
        )
    {%- else -%}
        cast(null as map<string, string>)
    {%- endif -%}
{%- endmacro %}
