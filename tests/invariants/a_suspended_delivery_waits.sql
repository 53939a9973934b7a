{%- do no_rows_where(not has_found('suspended')) -%}
-- It is not acknowledged: it has no status, it waits, and its trigger takes nothing more.
{%- set run = checked_run(ref('decisions')) %}
select
    decisions.delivery_id,
    decisions.trigger_name,
    document_status.status,
    waiting_deliveries.reason,
    trigger_states.is_suspended
from {{ ref('decisions') }} as decisions
left join {{ written_by(run, ref('document_status')) }} as document_status
    on
        decisions.delivery_id = document_status.delivery_id
        and decisions.trigger_name = document_status.trigger_name
left join {{ ref('waiting_deliveries') }} as waiting_deliveries
    on
        decisions.delivery_id = waiting_deliveries.delivery_id
        and decisions.trigger_name = waiting_deliveries.trigger_name
left join {{ ref('trigger_states') }} as trigger_states
    on decisions.trigger_name = trigger_states.trigger_name
where
    decisions.for_run_id = {{ run }}
    and decisions.status = 'SUSPENDED'
    and (
        document_status.delivery_id is not null
        or not coalesce(waiting_deliveries.reason = 'SUSPENDED', false)
        or not coalesce(trigger_states.is_suspended, false)
    )
