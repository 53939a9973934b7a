-- depends_on: {{ ref('published_runs') }}
select
    waiting_deliveries.delivery_id,
    waiting_deliveries.trigger_name,
    waiting_deliveries.reason,
    document_status.status
from {{ ref('waiting_deliveries') }} as waiting_deliveries
inner join {{ ref('document_status') }} as document_status
    on
        waiting_deliveries.delivery_id = document_status.delivery_id
        and waiting_deliveries.trigger_name = document_status.trigger_name
