with

statuses as (

    select * from {{ ref('document_statuses') }}
    where status = 'IN_DOUBT'

),

resubmissions as (

    select
        delivery_id,
        trigger_name,
        min(happened_at) as resubmitted_at
    from {{ ref('journal_entries') }}
    where event = 'RESUBMITTED'
    group by delivery_id, trigger_name

),

runs as (

    select * from {{ ref('published_runs') }}

),

-- `mark_looked_at` speaks of what people could see when it was given
looks as (

    select
        trigger_name,
        sort_array(collect_set(issued_at)) as looked_at
    from {{ source('landing', 'trigger_commands') }}
    where command = 'LOOKED_AT'
    group by trigger_name

),

with_looks as (

    select
        statuses.*,
        resubmissions.resubmitted_at,
        try_element_at(filter(looks.looked_at, t -> t >= runs.published_at), 1) as marked_at
    from statuses
    left join resubmissions
        on
            statuses.delivery_id = resubmissions.delivery_id
            and statuses.trigger_name = resubmissions.trigger_name
    left join runs on statuses.run_id = runs.run_id
    left join looks on statuses.trigger_name = looks.trigger_name

),

final as (

    select
        -- ids
        trigger_name,
        delivery_id,
        document_type,
        document_key,

        -- why
        decided_by,
        rule_id,
        rule_in_words as cause,
        matched_delivery_id,
        redelivery_count,

        -- times
        received_at,
        decided_at,
        resubmitted_at,
        least(resubmitted_at, marked_at) as looked_at
    from with_looks

)

select * from final
