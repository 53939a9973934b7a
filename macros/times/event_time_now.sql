{% macro event_time_now() -%}
    {#- The greatest received_at among the accepted landed deliveries that this or an earlier run
        has consumed, or the run's clock where that is earlier. -#}
    least({{ greatest_received_at() }}, {{ run_clock() }})
{%- endmacro %}
