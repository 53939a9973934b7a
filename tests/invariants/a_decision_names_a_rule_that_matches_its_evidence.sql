{%- set run = checked_run(ref('decisions'), ref('trigger_queue')) %}
{%- set evidence = {
    'eligible': 'trigger_queue.is_eligible',
    'detect_duplicates': 'trigger_queue.detect_duplicates',
    'use_history': 'trigger_queue.use_history',
    'has_resolver': 'trigger_queue.resolver is not null',
    'redelivery': 'decisions.redelivery',
    'key_state': 'decisions.key_state',
    'history_state': 'decisions.history_state',
    'resolver_result': 'decisions.resolver_result',
} %}
with

evidence as (

    select
        decisions.delivery_id,
        decisions.trigger_name,
        decisions.rule_id,
        decisions.status,
        decisions.decided_by,
        decisions.is_decided,
        decisions.origin,
        decisions.recoveries,
        {% for input, value in evidence.items() -%}
            cast({{ value }} as string) as {{ input }},
        {% endfor -%}
        -- entries that were removed while the delivery waited stay removed. A test behind the run
        -- does not know whether its operator has given history_unavailable.
        cast(
            trigger_queue.suspends_on_error
            and (
                decisions.history_state != 'UNAVAILABLE'
                or {{ var('history_unavailable') if current_run()
                    else "decisions.status = 'SUSPENDED'" }}
            )
            as string
        ) as suspends_on_error
    from {{ ref('decisions') }} as decisions
    inner join {{ ref('trigger_queue') }} as trigger_queue
        on
            decisions.delivery_id = trigger_queue.delivery_id
            and decisions.trigger_name = trigger_queue.trigger_name
    where decisions.for_run_id = {{ run }}

),

judged as (

    select
        evidence.*,
        case
            -- a delivery that waits for a document or behind another has no rule and no status
            when evidence.rule_id is null then evidence.status is null and not evidence.is_decided
            when evidence.rule_id = 'OPERATOR'
                then evidence.origin = 'RESUBMISSION' and evidence.status = 'NEW'
            when evidence.rule_id = 'MAX_RECOVERIES'
                then
                    evidence.origin = 'RECOVERY'
                    and evidence.recoveries > {{ var('max_recoveries') }}
                    and evidence.status = 'IN_DOUBT'
            else
                decision_rules.status = evidence.status
                and decision_rules.decided_by = evidence.decided_by
                and evidence.is_decided = (evidence.status != 'SUSPENDED')
                {% for input in evidence.keys() | list + ['suspends_on_error'] -%}
                    and (
                        decision_rules.{{ input }} = '*'
                        or array_contains(
                            split(decision_rules.{{ input }}, '[|]'), evidence.{{ input }}
                        )
                    )
                {% endfor -%}
        end as matches_rule
    from evidence
    left join {{ ref('decision_rules') }} as decision_rules
        on evidence.rule_id = decision_rules.rule_id

)

select *
from judged
where not coalesce(matches_rule, false)
