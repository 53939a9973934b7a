with

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
        executions.delivery_id,
        executions.trigger_name,
        max_by(
            struct(
                executions.result, coalesce(executions.ended_at, executions.recorded_at) as ended_at
            ),
            struct(executions.event = 'SUCCESS', executions.recorded_at, executions.execution_id)
        ) as latest
    from {{ source('landing', 'trigger_executions') }} as executions
    left join ends
        on
            executions.delivery_id = ends.delivery_id
            and executions.trigger_name = ends.trigger_name
    where
        {{ is_report() }}
        and executions.event != 'STARTED'
        -- only the event that has ended the document
        and executions.event = coalesce(
            if(ends.outcome = 'RETRIES_EXHAUSTED', 'TRANSIENT_ERROR', ends.outcome),
            executions.event
        )
    group by executions.delivery_id, executions.trigger_name

),

final as (

    select
        decided.delivery_id,
        decided.trigger_name,
        case
            when ends.outcome is not null then ends.outcome
            when decided.service is null then 'SUCCESS'
            when unfinished.delivery_id is not null then 'UNFINISHED'
            -- upkeep has removed its end from the journal
            else 'UNKNOWN'
        end as outcome,
        results.latest.result,
        case
            when decided.service is null then decided.decided_at
            when unfinished.delivery_id is null then results.latest.ended_at
        end as ended_at
    from {{ ref('document_status') }} as decided
    left join {{ ref('open_documents') }} as unfinished
        on
            decided.delivery_id = unfinished.delivery_id
            and decided.trigger_name = unfinished.trigger_name
    left join ends
        on
            decided.delivery_id = ends.delivery_id
            and decided.trigger_name = ends.trigger_name
    left join results
        on
            decided.delivery_id = results.delivery_id
            and decided.trigger_name = results.trigger_name

)

select * from final
