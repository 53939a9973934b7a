{% macro keys_by_expression(expressions) -%}
    {#- What the key expressions of triggers give for a landed row: a map from trigger to key.

        expressions: rows of the seed with trigger_name and key, SQL of the user. -#}
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
