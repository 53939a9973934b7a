select
    delivery_id,
    trigger_name,
    count_if(has_processing) as processing_entries,
    count_if(has_completed) as completed_entries
from {{ written_by(checked_run(), ref('history_ledger')) }} as history_ledger
group by delivery_id, trigger_name
having
    count_if(has_processing) > 1
    or count_if(has_completed) > 1
    or not bool_and(has_processing or has_completed)
