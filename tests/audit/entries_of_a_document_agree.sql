-- At most one entry of each status, and the completed one has the times of the processing one.
-- depends_on: {{ ref('published_runs') }}
select
    delivery_id,
    trigger_name,
    sort_array(collect_list(processing_status)) as entries
from {{ ref('document_history') }}
group by delivery_id, trigger_name
having
    count_if(processing_status = 'processing') != 1
    or count_if(processing_status = 'completed') > 1
    or count(distinct started_at, expires_at, key_hash, key_check, trigger_id) != 1
