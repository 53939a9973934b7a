-- depends_on: {{ ref('published_runs') }}
select
    delivery_id,
    trigger_name,
    count(*) as decisions
from {{ ref('document_status') }}
group by delivery_id, trigger_name
having count(*) > 1
