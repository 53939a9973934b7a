with

runs as (

    select
        run_id,
        run_number
    from {{ ref('published_runs') }}

),

-- what waits tells the clock of the run that has left it, not its id
runs_by_clock as (

    select
        started_at,
        min(run_number) as run_number
    from {{ ref('published_runs') }}
    group by started_at

),

final as (

    select
        document_status.*,
        {{ landed_delivery_id('document_status.delivery_id') }} as landed_delivery_id,
        runs.run_number,
        coalesce(runs_by_clock.run_number, runs.run_number) as first_run_number
    from {{ ref('document_status') }} as document_status
    left join runs on document_status.run_id = runs.run_id
    left join runs_by_clock on document_status.waiting_since = runs_by_clock.started_at

)

select * from final
