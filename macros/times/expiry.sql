{% macro expiry(started_at, time_to_live_ms) -%}
    {#- When an entry of history expires; null where it has not started. -#}
    if(
        {{ started_at }} is null,
        null,
        least({{ plus_ms(started_at, time_to_live_ms) }}, {{ latest_time() }})
    )
{%- endmacro %}
