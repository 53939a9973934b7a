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
        document_history.key_hash,
        document_history.key_check,
        document_history.started_at,
        document_history.expires_at
    from {{ ref('document_history') }} as document_history
    inner join {{ ref('document_status') }} as document_status
        on
            document_history.delivery_id = document_status.delivery_id
            and document_history.trigger_name = document_status.trigger_name
    inner join {{ ref('published_runs') }} as published_runs
        on document_status.run_id = published_runs.run_id
    where
        document_history.processing_status = 'processing'
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
