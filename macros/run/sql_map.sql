{% macro sql_map(pairs) -%}
    {#- A literal of type map<string, string>. -#}
    cast(map(
        {%- for key, value in pairs.items() -%}
            {{ sql_text(key) }}, {{ sql_text(value) }}{{ ', ' if not loop.last }}
        {%- endfor -%}
    ) as map<string, string>)
{%- endmacro %}
