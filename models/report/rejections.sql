with

rejected as (

    select * from {{ ref('rejected_deliveries') }}
    -- a REPEATED row has landed before
    where reason != 'REPEATED'

),

resubmissions as (

    select
        delivery_id as rejection_id,
        min(happened_at) as resubmitted_at
    from {{ ref('journal_entries') }}
    where event = 'RESUBMITTED'
    group by delivery_id

),

-- a corrected row has landed under the id of the rejected one
corrections as (

    select
        rejected.rejection_id,
        min(documents.decided_at) as corrected_at
    from rejected
    inner join {{ ref('document_status') }} as documents
        on
            rejected.delivery_id = documents.delivery_id
            and rejected.rejected_at <= documents.decided_at
    where rejected.table_name = 'deliveries' and rejected.reason != 'CONFLICTING'
    group by rejected.rejection_id

),

-- `mark_looked_at` without a trigger covers the rejections published before it was called
looks as (

    select sort_array(collect_set(issued_at)) as looked_at
    from {{ source('landing', 'trigger_commands') }}
    where command = 'LOOKED_AT' and trigger_name is null

),

final as (

    select
        -- ids
        rejected.rejection_id,
        rejected.table_name,
        rejected.delivery_id,

        -- why
        rejected.reason,
        rejected.message,

        -- the row
        rejected.source_file,
        rejected.source_line,
        rejected.raw_text,

        -- times
        rejected.landed_at,
        rejected.rejected_at,
        resubmissions.resubmitted_at,
        corrections.corrected_at,
        least(
            resubmissions.resubmitted_at,
            corrections.corrected_at,
            try_element_at(
                filter(
                    looks.looked_at,
                    t -> t >= coalesce(runs.published_at, rejected.rejected_at)
                ),
                1
            )
        ) as looked_at
    from rejected
    left join resubmissions on rejected.rejection_id = resubmissions.rejection_id
    left join corrections on rejected.rejection_id = corrections.rejection_id
    left join {{ ref('published_runs') }} as runs on rejected.run_id = runs.run_id
    cross join looks

)

select * from final
