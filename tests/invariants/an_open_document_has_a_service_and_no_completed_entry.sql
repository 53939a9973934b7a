{%- do no_rows_where(is_without_rows('open_documents')) -%}
select
    open_documents.delivery_id,
    open_documents.trigger_name,
    open_documents.service,
    completed.started_at as completed_started_at
from {{ ref('open_documents') }} as open_documents
left join {{ written_by(checked_run(), ref('history_ledger')) }} as completed
    on
        open_documents.delivery_id = completed.delivery_id
        and open_documents.trigger_name = completed.trigger_name
        and completed.has_completed
where open_documents.service is null or completed.delivery_id is not null
