-- An entry belongs to a document that was decided NEW, or was imported.
-- depends_on: {{ ref('published_runs') }}
select
    document_history.delivery_id,
    document_history.trigger_name,
    document_history.processing_status,
    document_status.status
from {{ ref('document_history') }} as document_history
left join {{ ref('document_status') }} as document_status
    on
        document_history.delivery_id = document_status.delivery_id
        and document_history.trigger_name = document_status.trigger_name
left anti join {{ ref('published_runs') }} as imports
    on document_history.run_id = imports.run_id and imports.kind = 'import'
where document_status.status is distinct from 'NEW'
