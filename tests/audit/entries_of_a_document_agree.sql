-- At most one entry of each status; both start at one time, and the completed one expires no
-- sooner.
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
    or count(distinct started_at, key_hash, key_check, trigger_id) != 1
    or max(if(processing_status = 'completed', expires_at, null))
    < max(if(processing_status = 'processing', expires_at, null))
