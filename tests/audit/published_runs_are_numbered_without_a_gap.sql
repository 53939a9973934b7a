select
    count(*) as runs,
    count(distinct run_number) as numbers,
    min(run_number) as first_number,
    max(run_number) as last_number
from {{ ref('published_runs') }}
having
    count(*) != count(distinct run_number)
    or count(*) != count(distinct run_id)
    or min(run_number) != 1
    or max(run_number) != count(*)
