{% macro duration_in_words(milliseconds) -%}
    {#- A span of time as a person says it: 250 ms, 90 s, 45 minutes, 2 hours, 3.5 days. -#}
    case
        {%- for limit, divisor, unit in [
            (1000, 1, 'ms'), (120000, 1000, 's'), (7200000, 60000, 'minutes'),
            (172800000, 3600000, 'hours'), (none, 86400000, 'days'),
        ] %}
        {{ 'when ' ~ milliseconds ~ ' < ' ~ limit if limit else 'when true' }}
            then concat(
                regexp_replace(
                    cast(cast({{ milliseconds }} / {{ divisor }} as decimal(20, 1)) as string),
                    '[.]0$',
                    ''
                ),
                ' {{ unit }}'
            )
        {%- endfor %}
    end
{%- endmacro %}
