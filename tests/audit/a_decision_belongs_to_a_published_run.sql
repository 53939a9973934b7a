-- And a published run has as many decisions as its record says.
with

decided as (

    select
        run_id,
        count(*) as decided
    from {{ ref('document_status') }}
    group by run_id

)

select
    coalesce(published_runs.run_id, decided.run_id) as run_id,
    published_runs.decided as recorded,
    decided.decided
from {{ ref('published_runs') }} as published_runs
full outer join decided on published_runs.run_id = decided.run_id
where
    published_runs.decided is distinct from coalesce(decided.decided, 0)
    -- retention forgets whole days of them
    and not coalesce(
        published_runs.run_number <= {{ forgotten_until() }}
        and coalesce(decided.decided, 0) < published_runs.decided,
        false
    )
