{% macro advice_in_words(f) -%}
    {#- Which setting would have changed the decision, as seeds/decision_rules.csv says it. `f` has
        rule_id and the settings that the trigger has now. -#}
    {%- set now = {
        'detect_duplicates': f ~ '.detect_duplicates',
        'use_history': f ~ '.use_history',
        'has_resolver': '(' ~ f ~ '.resolver is not null)',
    } -%}
    concat_ws(
        '; ',
        if(
            case {{ f }}.rule_id
                {% for rule in decision_rules() -%}
                    {%- set others = [] -%}
                    {%- for setting, value in now.items() if rule[setting] in ['true', 'false'] -%}
                        {%- do others.append(value ~ ' != ' ~ rule[setting]) -%}
                    {%- endfor -%}
                    {%- if others -%}
                        when '{{ rule.rule_id }}' then {{ others | join(' or ') }}
                    {% endif -%}
                {%- endfor -%}
                else false
            end,
            'the trigger has other settings by now, see seeds/triggers.csv',
            null
        ),
        case {{ f }}.rule_id
            {% for rule in decision_rules() -%}
                when '{{ rule.rule_id }}' then {{ text_with(
                    rule.advice,
                    '{time_to_live}',
                    duration_in_words(f ~ '.history_time_to_live_ms'),
                ) }}
            {% endfor -%}
            when 'OPERATOR' then 'none: an operator has decided'
            when 'MAX_RECOVERIES'
                then concat(
                    'a longer execution_timeout_ms, if the service was at work all the time; ',
                    'the variable max_recoveries'
                )
            else 'see what it waits for'
        end
    )
{%- endmacro %}
