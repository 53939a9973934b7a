{% macro row_of_seed(parts) -%}
    {#- How a message names a row. parts: pairs of words and a column, see seed_rules. -#}
    concat(
        {%- for words, column in parts -%}
            '{{ words }}', coalesce({{ column }}, '(none)'){{ ', ' if not loop.last }}
        {%- endfor -%}
    )
{%- endmacro %}
