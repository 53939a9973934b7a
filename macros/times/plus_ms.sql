{% macro plus_ms(time, milliseconds) -%}
    timestampadd(millisecond, {{ milliseconds }}, {{ time }})
{%- endmacro %}
