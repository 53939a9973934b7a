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
