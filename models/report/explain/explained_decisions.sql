with

facts as (

    select
        *,
        -- adds the basis of a rule that the product documentation does not state
        concat(
            'rule ',
            rule_id,
            case rule_id
                {% for rule in decision_rules() if rule.basis != 'documented' -%}
                    when '{{ rule.rule_id }}' then ' ({{ rule.basis }})'
                {% endfor -%}
                else ''
            end
        ) as rule,
        {{ rule_in_words('evidence') }} as rule_in_words
    from {{ ref('explained_evidence') }} as evidence

),

final as (

    select
        *,
        case
            when rule_id is null and not use_history then 'not asked: the trigger does not use it'
            when rule_id is null then 'asked when it is decided'
            when status = 'NOT_CHECKED' then 'not asked: nothing is checked'
            when rule_id in {{ rules_where('use_history', 'false') }}
                then 'not asked: the trigger does not use it'
            when rule_id in {{ rules_where('key_state', 'MISSING|TOO_LONG') }}
                then 'not asked: there is nothing to look up'
            when rule_id = 'OPERATOR' then 'not asked: the operator has decided'
            when rule_id = 'MAX_RECOVERIES' then 'not asked: it came back too often'
            else concat_ws(
                ', by delivery ',
                case history_state
                    when 'NONE' then 'NONE: it did not know the key'
                    when 'PROCESSING'
                        then 'PROCESSING: it knew the key as begun and not as completed'
                    when 'COMPLETED' then 'COMPLETED: it knew the key as completed'
                    when 'BOTH' then 'BOTH: it knew the key as begun and completed'
                    when 'UNAVAILABLE' then concat(
                        'UNAVAILABLE: history_unavailable was set, ',
                        'or it had removed entries that this delivery may need'
                    )
                end,
                matched_delivery_id
            )
        end as history_says,
        case
            when resolver_result is null and rule_id is null
                then 'asked when it is decided, if a rule needs its answer'
            when resolver_result is null and resolver is null
                then 'not asked: the trigger has none'
            when resolver_result is null then 'not asked: no rule needed its answer'
            else concat_ws(
                ': ',
                concat(
                    coalesce(resolver, 'a resolver that the trigger no longer has'),
                    case resolver_result
                        when 'TRANSIENT_ERROR' then ' failed for the time being'
                        when 'ERROR' then ' failed'
                        when 'INVALID' then ' gave no valid answer'
                        else concat(' answered ', resolver_result)
                    end
                ),
                message
            )
        end as resolver_says,
        case
            when status is not null
                then concat(
                    rule,
                    ', ',
                    {{ time_in_words('decided_at') }},
                    ', run ',
                    run_id,
                    ': ',
                    rule_in_words,
                    '; decided by: ',
                    decided_by_in_words
                )
            when rule_id is not null
                then concat(
                    'not decided: by ', rule, ' it has suspended the trigger: ', rule_in_words
                )
            else 'not decided yet'
        end as decision
    from facts

)

select * from final
