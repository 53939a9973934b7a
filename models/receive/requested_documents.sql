{{ config(materialized='ephemeral') }}
{%- set run = current_run() -%}
with

-- all decisions of a landed delivery in a trigger: the delivery, its recoveries, its resubmissions.
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

ended as (

    select
        journal.delivery_id,
        journal.trigger_name,
        journal.event as ended_by,
        runs.run_number as heard_by_run
    from {{ last_published('journal_entries') }} as journal
    inner join {{ last_published('published_runs') }} as runs on journal.run_id = runs.run_id
    where journal.event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')
    union all
    -- this run, which is later than any published one
    select
        delivery_id,
        trigger_name,
        coalesce(ended_by, 'UNFINISHED') as ended_by,
        {{ run.number if run else 'cast(null as bigint)' }} as heard_by_run
    from {{ ref('in_execution_this_run') }}

),

with_outcome as (

    select
        members.*,
        case
            when members.status in ('IN_DOUBT', 'DUPLICATE') then members.status
            when ended.ended_by is not null then ended.ended_by
            when members.service is null then 'SUCCESS'
            else 'UNKNOWN'
        end as outcome
    from members
    left join ended
        on
            members.delivery_id = ended.delivery_id
            and members.trigger_name = ended.trigger_name

),

-- a doubt is settled if a document of its key has succeeded since
settled as (

    select
        doubts.delivery_id,
        doubts.trigger_name,
        min_by(
            others.delivery_id, struct(ended.heard_by_run, others.delivery_id)
        ) as settled_by_delivery_id
    from with_outcome as doubts
    inner join {{ last_published('document_status') }} as others
        on
            doubts.trigger_name = others.trigger_name
            and doubts.document_key = others.document_key
    inner join ended
        on
            others.delivery_id = ended.delivery_id
            and others.trigger_name = ended.trigger_name
            and doubts.decided_by_run < ended.heard_by_run
    where doubts.outcome = 'IN_DOUBT' and ended.ended_by = 'SUCCESS'
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
