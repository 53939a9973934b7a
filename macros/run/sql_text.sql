{% macro sql_text(value) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        '{{ (value | string).replace('\\', '\\\\').replace("'", "\\'") }}'
    {%- endif -%}
{%- endmacro %}
