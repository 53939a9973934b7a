{% macro text_with(text, name, expression) -%}
    {#- A text literal in which a name in braces gives way to the text that an expression makes. -#}
    {%- set parts = [] -%}
    {%- for part in text.split(name) -%}
        {%- do parts.append(sql_text(part)) -%}
    {%- endfor -%}
    {{ 'concat(' ~ parts | join(', ' ~ expression ~ ', ') ~ ')' if parts | length > 1 else parts[0] }}
{%- endmacro %}
