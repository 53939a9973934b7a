{% macro time_in_words(time) -%}
    {#- A time to the millisecond, with its zone. -#}
    date_format({{ time }}, "yyyy-MM-dd HH:mm:ss.SSS 'UTC'")
{%- endmacro %}
