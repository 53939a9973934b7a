select
    delivery_id,
    trigger_name,
    processing_status,
    count(*) as entries
from {{ ref('document_history') }}
where run_id = {{ checked_run() }}
group by delivery_id, trigger_name, processing_status
having count(*) > 1 or processing_status not in ('processing', 'completed')
