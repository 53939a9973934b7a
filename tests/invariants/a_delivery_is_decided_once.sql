select
    delivery_id,
    trigger_name,
    count(*) as decisions
from {{ ref('decisions') }}
where for_run_id = {{ checked_run(ref('decisions')) }}
group by delivery_id, trigger_name
having count(*) > 1
