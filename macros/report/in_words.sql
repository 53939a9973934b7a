{% macro rule_in_words(decision) -%}
    {#- What a rule found, as seeds/decision_rules.csv says it, and what the resolver answered.
        `decision`: a relation with rule_id, key_state, resolver_result and message. -#}
    {%- set d = decision -%}
    concat_ws(
        ': ',
        replace(
            case {{ d }}.rule_id
                {% for rule in decision_rules() -%}
                    when '{{ rule.rule_id }}' then {{ sql_text(rule.finding) }}
                {% endfor -%}
                when 'OPERATOR' then 'an operator resubmitted it'
                when 'MAX_RECOVERIES'
                    then 'its service was interrupted after each of its recoveries'
            end,
            '{key_problem}',
            if(
                {{ d }}.key_state = 'MISSING',
                'it has no key',
                'its key is longer than {{ longest_key() }} characters'
            )
        ),
        case {{ d }}.resolver_result
            when 'TRANSIENT_ERROR' then 'it failed for the time being'
            when 'ERROR' then 'it failed'
            when 'INVALID' then 'it gave no valid answer'
            else concat('it answered ', {{ d }}.resolver_result)
        end,
        {{ d }}.message
    )
{%- endmacro %}

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

{% macro time_in_words(time, fraction='.SSS') -%}
    {#- A time in UTC, whatever the time zone of the session.

        fraction: the part below a second in Spark's pattern letters, here to the millisecond. -#}
    concat(
        cast(
            timestamp_ntz '1970-01-01 00:00:00'
            + make_dt_interval(0, 0, 0, unix_seconds({{ time }})) as string
        ),
        date_format({{ time }}, "{{ fraction }} 'UTC'")
    )
{%- endmacro %}
