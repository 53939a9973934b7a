select
    rejected_deliveries.*,
    runs.run_number
from {{ ref('rejected_deliveries') }} as rejected_deliveries
left join {{ ref('published_runs') }} as runs on rejected_deliveries.run_id = runs.run_id
where rejected_deliveries.table_name = 'deliveries'
