{% macro expiry(started_at, time_to_live_ms) -%}
    {#- When an entry of history expires; null if started_at is. -#}
    if(
        {{ started_at }} is null,
        null,
        least(
            timestampadd(millisecond, {{ time_to_live_ms }}, {{ started_at }}), {{ latest_time() }}
        )
    )
{%- endmacro %}

{% macro live_until(expires_at) -%}
    {#- Until when an entry of history is live; forever if it expires at latest_time(), where
        expiry is cut off. -#}
    if(
        {{ expires_at }} >= {{ latest_time() }},
        {{ forever() }},
        timestampadd(millisecond, {{ var('clock_skew_tolerance_ms') }}, {{ expires_at }})
    )
{%- endmacro %}

{% macro awaited_until(undecided) -%}
    {#- A relation of the keys for whose document deliveries wait, with the time until which these
        were received. The document's entry `completed` lives at least so long, so that they find it
        however late its end is reported. undecided: waiting_deliveries, or the same columns of this
        run. -#}
    (
        select
            trigger_name,
            awaited_key_hash as key_hash,
            least(timestampadd(microsecond, 1, max(received_at)), {{ latest_time() }}) as until
        from {{ undecided }}
        where awaited_key_hash is not null
        group by trigger_name, awaited_key_hash
    )
{%- endmacro %}

{% macro forever() -%}
    {#- Until when an unfinished document is known: later than any time a document can carry. -#}
    timestamp '+200000-01-01 00:00:00'
{%- endmacro %}

{% macro latest_time() -%}
    {#- The latest time that is written: Python reads no later year. -#}
    timestamp '9999-12-31 23:59:59.999999'
{%- endmacro %}
