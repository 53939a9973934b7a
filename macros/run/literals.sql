{% macro sql_text(value) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        '{{ (value | string).replace('\\', '\\\\').replace("'", "\\'") }}'
    {%- endif -%}
{%- endmacro %}

{% macro sql_map(pairs) -%}
    {#- A literal of type map<string, string>. -#}
    cast(map(
        {%- for key, value in pairs.items() -%}
            {{ sql_text(key) }}, {{ sql_text(value) }}{{ ', ' if not loop.last }}
        {%- endfor -%}
    ) as map<string, string>)
{%- endmacro %}

{% macro most_literals() -%}
    {#- At most so many values are written into a statement in place of a join with a table. -#}
    {{ return(1000) }}
{%- endmacro %}
