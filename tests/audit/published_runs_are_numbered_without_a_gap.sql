-- Runs are numbered among themselves, and all publications are: an upkeep is one and no run.
with

numbered as (

    select
        'run' as what,
        run_id,
        run_number as number
    from {{ ref('published_runs') }}
    where kind = 'run'
    union all
    select
        'publication' as what,
        -- compactions of one command had one id in earlier versions
        cast(publication_number as string) as run_id,
        publication_number as number
    from {{ ref('published_runs') }}

)

select
    what,
    count(*) as rows_found,
    count(distinct number) as numbers,
    min(number) as first_number,
    max(number) as last_number
from numbered
group by what
having
    count(*) != count(distinct number)
    or count(*) != count(distinct run_id)
    or min(number) != 1
    or max(number) != count(*)
