{% macro time_in_words(time, fraction='.SSS') -%}
    {#- A time in UTC, whatever the zone of the session that asks.

        fraction: the part below a second in Spark's pattern letters, here to the millisecond. -#}
    concat(
        cast(
            timestamp_ntz '1970-01-01 00:00:00'
            + make_dt_interval(0, 0, 0, unix_seconds({{ time }})) as string
        ),
        date_format({{ time }}, "{{ fraction }} 'UTC'")
    )
{%- endmacro %}
