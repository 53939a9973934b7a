{% macro latest_time() -%}
    {#- The latest time that is written: Python reads no later year. -#}
    timestamp '9999-12-31 23:59:59.999999'
{%- endmacro %}
