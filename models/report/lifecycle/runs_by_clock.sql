-- waiting_deliveries has the clock of the run that wrote the row, not its run_id
select
    started_at,
    min(run_number) as run_number
from {{ ref('published_runs') }}
group by started_at
