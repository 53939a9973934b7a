with

statuses as (

    select * from {{ ref('document_statuses') }}
    where status = 'DUPLICATE'

),

-- ---- what became of the document that a duplicate repeats

originals as (

    select * from {{ ref('document_status') }}

),

ends as (

    select
        delivery_id,
        trigger_name,
        min(event) as outcome
    from {{ ref('journal_entries') }}
    where event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')
    group by delivery_id, trigger_name

),

results as (

    select
        delivery_id,
        trigger_name,
        max_by(
            struct(result, coalesce(ended_at, recorded_at) as ended_at),
            struct(event = 'SUCCESS', recorded_at, execution_id)
        ) as latest
    from {{ source('landing', 'trigger_executions') }}
    where event != 'STARTED'
    group by delivery_id, trigger_name

),

final as (

    select
        -- ids
        statuses.trigger_name,
        statuses.delivery_id,
        statuses.document_type,
        statuses.document_key,

        -- why
        statuses.matched_delivery_id,
        statuses.decided_by,
        statuses.rule_id,
        statuses.rule_in_words as cause,
        statuses.redelivery_count,

        -- what the original gave
        case
            when originals.delivery_id is null then null
            when ends.outcome is not null then ends.outcome
            when originals.service is null then 'SUCCESS'
            else 'UNFINISHED'
        end as original_outcome,
        results.latest.result as original_result,

        -- times
        statuses.received_at,
        statuses.decided_at,
        if(originals.service is null, originals.decided_at, results.latest.ended_at)
            as original_ended_at
    from statuses
    left join originals
        on
            statuses.matched_delivery_id = originals.delivery_id
            and statuses.trigger_name = originals.trigger_name
    left join ends
        on
            statuses.matched_delivery_id = ends.delivery_id
            and statuses.trigger_name = ends.trigger_name
    left join results
        on
            statuses.matched_delivery_id = results.delivery_id
            and statuses.trigger_name = results.trigger_name

)

select * from final
