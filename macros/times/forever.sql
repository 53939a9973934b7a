{% macro forever() -%}
    {#- Until when an unfinished document is known: later than any time a document can carry. -#}
    timestamp '+200000-01-01 00:00:00'
{%- endmacro %}
