with

statuses as (

    select * from {{ ref('decided_deliveries') }}
    where status = 'IN_DOUBT'

),

runs as (

    select * from {{ ref('published_runs') }}

),

-- ---- a document of its key that has succeeded since

successes as (

    select
        documents.delivery_id,
        documents.trigger_name,
        documents.document_key,
        min(journal.happened_at) as happened_at,
        min(runs.run_number) as run_number
    from {{ ref('journal_entries') }} as journal
    inner join {{ ref('document_status') }} as documents
        on
            journal.delivery_id = documents.delivery_id
            and journal.trigger_name = documents.trigger_name
    inner join runs on journal.run_id = runs.run_id
    where journal.event in ('SUCCESS', 'LATE_SUCCESS')
    group by documents.delivery_id, documents.trigger_name, documents.document_key

),

completed_since as (

    select
        statuses.delivery_id,
        statuses.trigger_name,
        min_by(
            struct(successes.delivery_id, successes.happened_at),
            struct(successes.run_number, successes.delivery_id)
        ) as success
    from statuses
    inner join runs on statuses.run_id = runs.run_id
    inner join successes
        on
            statuses.trigger_name = successes.trigger_name
            and statuses.document_key = successes.document_key
            and runs.run_number < successes.run_number
    group by statuses.delivery_id, statuses.trigger_name

),

-- `mark_looked_at` covers the doubts published before it was called
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
        -- the first resubmission by a run after the decision, by run number since clocks differ
        try_element_at(
            filter(resubmissions.resubmitted, r -> r.run_number > runs.run_number), 1
        ).happened_at as resubmitted_at,
        completed_since.success.happened_at as completed_since,
        completed_since.success.delivery_id as completed_by_delivery_id,
        try_element_at(filter(looks.looked_at, t -> t >= runs.published_at), 1) as marked_at
    from statuses
    left join {{ ref('resubmissions_by_document') }} as resubmissions
        on
            {{ landed_delivery_id('statuses.delivery_id') }} = resubmissions.landed_delivery_id
            and statuses.trigger_name = resubmissions.trigger_name
    left join completed_since
        on
            statuses.delivery_id = completed_since.delivery_id
            and statuses.trigger_name = completed_since.trigger_name
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
        completed_by_delivery_id,

        -- times
        received_at,
        decided_at,
        completed_since,
        resubmitted_at,
        least(resubmitted_at, marked_at) as looked_at
    from with_looks

)

select * from final
