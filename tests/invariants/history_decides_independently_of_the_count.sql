-- With history on, the same evidence but for the redelivery count gives the same rule.
{%- set run = checked_run(ref('decisions'), ref('trigger_queue')) %}
select
    decisions.trigger_name,
    trigger_queue.is_eligible,
    decisions.key_state,
    decisions.history_state,
    decisions.resolver_result,
    collect_set(decisions.rule_id) as rules,
    collect_set(decisions.redelivery) as redeliveries
from {{ ref('decisions') }} as decisions
inner join {{ ref('trigger_queue') }} as trigger_queue
    on
        decisions.delivery_id = trigger_queue.delivery_id
        and decisions.trigger_name = trigger_queue.trigger_name
where
    decisions.for_run_id = {{ run }}
    and trigger_queue.detect_duplicates
    and trigger_queue.use_history
    and decisions.rule_id not in ('OPERATOR', 'MAX_RECOVERIES')
group by
    decisions.trigger_name,
    trigger_queue.is_eligible,
    decisions.key_state,
    decisions.history_state,
    decisions.resolver_result
having
    count(distinct decisions.rule_id) > 1
    or bool_or(decisions.decided_by = 'COUNT')
