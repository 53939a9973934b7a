{% macro expiry(started_at, time_to_live_ms) -%}
    {#- When an entry of history expires; null where it has not started. -#}
    if(
        {{ started_at }} is null,
        null,
        least({{ plus_ms(started_at, time_to_live_ms) }}, {{ latest_time() }})
    )
{%- endmacro %}


{% macro feed_time(received_at, landed_at, happened_at) -%}
    {#- When something happened to a delivery here, by the clock of its feed: received_at plus what
        has passed since it landed, never less than nothing; null where happened_at is. In a live
        feed that is the wall clock, in the replay of an old feed the old time. -#}
    case
        when {{ happened_at }} > {{ landed_at }}
            then least(
                {{ received_at }} + ({{ happened_at }} - {{ landed_at }}), {{ latest_time() }}
            )
        when {{ happened_at }} is not null then {{ received_at }}
    end
{%- endmacro %}


{% macro forever() -%}
    {#- Until when an unfinished document is known: later than any time that a document can carry. -#}
    timestamp '+200000-01-01 00:00:00'
{%- endmacro %}


{% macro latest_time() -%}
    {#- The latest time that is written: Python reads no later year. -#}
    timestamp '9999-12-31 23:59:59.999999'
{%- endmacro %}


{% macro live_until(expires_at) -%}
    {#- Until when an entry of history is live; of one that expires at the latest time that is
        written, whatever is received. -#}
    if(
        {{ expires_at }} >= {{ latest_time() }},
        {{ forever() }},
        {{ plus_ms(expires_at, var('clock_skew_tolerance_ms')) }}
    )
{%- endmacro %}


{% macro plus_ms(time, milliseconds) -%}
    timestampadd(millisecond, {{ milliseconds }}, {{ time }})
{%- endmacro %}


{% macro on_days(column, days) -%}
    {#- A condition that Iceberg turns into whole partitions: the given days, or the stretch
        between the first and the last where they are many. -#}
    {%- if days is none -%}
        true
    {%- elif days | length == 0 -%}
        false
    {%- elif days | length > 40 -%}
        {{ column }} >= timestamp '{{ days | first }}'
        and {{ column }} < timestamp '{{ days | last }}' + interval 1 day
    {%- else -%}
        ({% for day in days -%}
            ({{ column }} >= timestamp '{{ day }}'
            and {{ column }} < timestamp '{{ day }}' + interval 1 day)
            {{- ' or ' if not loop.last }}
        {%- endfor %})
    {%- endif -%}
{%- endmacro %}
