{{ config(materialized='ephemeral') }}
{%- set run = current_run() -%}
{%- set this_run = run.number if run else 'cast(null as bigint)' -%}
with

-- all decisions on a landed delivery in a trigger: on itself, its recoveries and its resubmissions.
-- Each was decided by a later run than the one before
members as (

    select
        statuses.*,
        {{ landed_delivery_id('statuses.delivery_id') }} as line_id,
        runs.run_number as decided_by_run
    from {{ last_published('document_status') }} as statuses
    inner join {{ last_published('published_runs') }} as runs on statuses.run_id = runs.run_id
    left semi join {{ ref('stg_resubmissions') }} as requests
        on
            {{ landed_delivery_id('statuses.delivery_id') }}
            = {{ landed_delivery_id('requests.delivery_id') }}
            and statuses.trigger_name = requests.trigger_name

),

heard as (

    select
        journal.delivery_id,
        journal.trigger_name,
        journal.event,
        runs.run_number as reported_to_run
    from {{ last_published('journal_entries') }} as journal
    inner join {{ last_published('published_runs') }} as runs on journal.run_id = runs.run_id
    where
        journal.event in (
            'SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST', 'LATE_SUCCESS'
        )
    -- reports read by this run, which is later than any published run
    union all
    select
        delivery_id,
        trigger_name,
        coalesce(ended_by, 'UNFINISHED') as event,
        {{ this_run }} as reported_to_run
    from {{ ref('in_execution_this_run') }}
    union all
    select distinct
        delivery_id,
        trigger_name,
        'LATE_SUCCESS' as event,
        {{ this_run }} as reported_to_run
    from {{ ref('stg_trigger_executions') }}
    where event = 'SUCCESS'

),

ended as (

    select
        delivery_id,
        trigger_name,
        event as ended_by
    from heard
    where event != 'LATE_SUCCESS'

),

-- includes documents that counted as interrupted or failed. Of repeated reports the first counts
successes as (

    select
        delivery_id,
        trigger_name,
        min(reported_to_run) as reported_to_run
    from heard
    where event in ('SUCCESS', 'LATE_SUCCESS')
    group by delivery_id, trigger_name

),

with_outcome as (

    select
        members.*,
        case
            when members.status in ('IN_DOUBT', 'DUPLICATE') then members.status
            when ended.ended_by is not null then ended.ended_by
            when members.condition_name is null then 'UNMATCHED'
            when members.service is null then 'SUCCESS'
            else 'UNKNOWN'
        end as outcome
    from members
    left join ended
        on
            members.delivery_id = ended.delivery_id
            and members.trigger_name = ended.trigger_name

),

-- a document in doubt is settled if a document of the same key has succeeded since
settled as (

    select
        doubts.delivery_id,
        doubts.trigger_name,
        min_by(
            others.delivery_id, struct(successes.reported_to_run, others.delivery_id)
        ) as settled_by_delivery_id
    from with_outcome as doubts
    inner join {{ last_published('document_status') }} as others
        on
            doubts.trigger_name = others.trigger_name
            and doubts.document_key = others.document_key
    inner join successes
        on
            others.delivery_id = successes.delivery_id
            and others.trigger_name = successes.trigger_name
            and doubts.decided_by_run < successes.reported_to_run
    where doubts.outcome = 'IN_DOUBT'
    group by doubts.delivery_id, doubts.trigger_name

),

final as (

    select
        with_outcome.*,
        settled.settled_by_delivery_id
    from with_outcome
    left join settled
        on
            with_outcome.delivery_id = settled.delivery_id
            and with_outcome.trigger_name = settled.trigger_name

)

select * from final
