{% macro time_in_words(time, fraction='.SSS') -%}
    {#- A time to the millisecond, in UTC whatever the zone of the session that asks.

    fraction: how the part below a second is written, in Spark's pattern letters. -#}
    concat(
        cast(
            timestamp_ntz '1970-01-01 00:00:00'
            + make_dt_interval(0, 0, 0, unix_seconds({{ time }})) as string
        ),
        date_format({{ time }}, "{{ fraction }} 'UTC'")
    )
{%- endmacro %}
