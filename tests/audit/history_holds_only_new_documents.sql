-- An entry belongs to a document that was decided NEW, or was imported.
-- depends_on: {{ ref('published_runs') }}
select
    history_ledger.delivery_id,
    history_ledger.trigger_name,
    document_status.status
from {{ ref('history_ledger') }} as history_ledger
left join {{ ref('document_status') }} as document_status
    on
        history_ledger.delivery_id = document_status.delivery_id
        and history_ledger.trigger_name = document_status.trigger_name
left join {{ ref('published_runs') }} as runs on history_ledger.run_id = runs.run_id
where
    document_status.status is distinct from 'NEW'
    and runs.kind is distinct from 'import'
    -- retention may have forgotten its status
    and not coalesce(
        document_status.status is null and runs.run_number <= {{ forgotten_until() }}, false
    )
