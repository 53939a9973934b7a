-- A document that history has found new starts when no earlier one of its key was still live at
-- the time at which it was received.
-- depends_on: {{ ref('published_runs') }}
with

found_new as (

    select
        document_status.delivery_id,
        document_status.trigger_name,
        document_status.received_at,
        published_runs.run_number,
        history_ledger.key_hash,
        history_ledger.key_check,
        history_ledger.started_at,
        history_ledger.expires_at
    from {{ ref('history_ledger') }} as history_ledger
    inner join {{ ref('document_status') }} as document_status
        on
            history_ledger.delivery_id = document_status.delivery_id
            and history_ledger.trigger_name = document_status.trigger_name
    inner join {{ ref('published_runs') }} as published_runs
        on document_status.run_id = published_runs.run_id
    where
        history_ledger.has_processing
        and document_status.decided_by = 'HISTORY'

),

in_order as (

    select
        *,
        max(expires_at) over (
            partition by trigger_name, key_hash, key_check
            order by run_number, received_at, delivery_id
            rows between unbounded preceding and 1 preceding
        ) as live_until
    from found_new

)

select *
from in_order
where live_until > received_at
