{% macro time_in_words(time) -%}
    {#- A time to the millisecond, in UTC whatever the zone of the session that asks. -#}
    concat(
        cast(
            timestamp_ntz '1970-01-01 00:00:00'
            + make_dt_interval(0, 0, 0, unix_seconds({{ time }})) as string
        ),
        date_format({{ time }}, ".SSS 'UTC'")
    )
{%- endmacro %}
