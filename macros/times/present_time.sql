{% macro present_time() -%}
    {#- What the views of open work take for now: the clock, or the variable as_of. -#}
    {%- if var('as_of') -%}
        timestamp '{{ var('as_of') }}'
    {%- else -%}
        current_timestamp()
    {%- endif -%}
{%- endmacro %}
