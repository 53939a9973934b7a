-- Never where history knows none, completed or both, nor behind a delivery that waits.
select
    decisions.delivery_id,
    decisions.trigger_name,
    decisions.resolver_result,
    decisions.history_state,
    decisions.rule_id
from {{ ref('decisions') }} as decisions
left join {{ ref('decision_rules') }} as decision_rules
    on decisions.rule_id = decision_rules.rule_id
where
    decisions.for_run_id = {{ checked_run(ref('decisions')) }}
    and decisions.resolver_result is not null
    and coalesce(decision_rules.resolver_result, '*') = '*'
