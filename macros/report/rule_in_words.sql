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
                'its key is longer than 96 characters'
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
