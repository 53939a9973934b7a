{% macro expiry(started_at, time_to_live_ms) -%}
    {#- When an entry of history expires; null where it has not started. -#}
    if(
        {{ started_at }} is null,
        null,
        least(
            timestampadd(millisecond, {{ time_to_live_ms }}, {{ started_at }}), {{ latest_time() }}
        )
    )
{%- endmacro %}
