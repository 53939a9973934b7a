-- depends_on: {{ ref('published_runs') }}
select
    open_documents.delivery_id,
    open_documents.trigger_name,
    document_status.status,
    completed.expires_at as completed_expires_at
from {{ ref('open_documents') }} as open_documents
left join {{ ref('document_status') }} as document_status
    on
        open_documents.delivery_id = document_status.delivery_id
        and open_documents.trigger_name = document_status.trigger_name
left join {{ ref('history_ledger') }} as completed
    on
        open_documents.delivery_id = completed.delivery_id
        and open_documents.trigger_name = completed.trigger_name
        and completed.has_completed
where
    not coalesce(document_status.status in ('NEW', 'NOT_CHECKED'), false)
    or completed.delivery_id is not null
