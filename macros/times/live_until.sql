{% macro live_until(expires_at) -%}
    {#- Until when an entry of history is live; of one that expires at the latest time that is
        written, whatever is received. -#}
    if(
        {{ expires_at }} >= {{ latest_time() }},
        {{ forever() }},
        timestampadd(millisecond, {{ var('clock_skew_tolerance_ms') }}, {{ expires_at }})
    )
{%- endmacro %}
