{% macro run_clock() -%}
    timestamp '{{ run_started_at.strftime("%Y-%m-%d %H:%M:%S.%f") }}'
{%- endmacro %}
