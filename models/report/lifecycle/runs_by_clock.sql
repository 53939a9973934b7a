-- what waits tells the clock of the run that has left it, not its id
select
    started_at,
    min(run_number) as run_number
from {{ ref('published_runs') }}
group by started_at
