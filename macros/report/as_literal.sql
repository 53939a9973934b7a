{% macro as_literal(text) -%}
    {#- A text as a literal of SQL, for a query to copy; sql_text does it for what Jinja knows. -#}
    concat('\'', replace(replace({{ text }}, '\\', '\\\\'), '\'', '\\\''), '\'')
{%- endmacro %}
