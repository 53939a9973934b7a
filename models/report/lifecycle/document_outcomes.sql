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
        decided.delivery_id,
        decided.trigger_name,
        case
            when ends.outcome is not null then ends.outcome
            when decided.service is null then 'SUCCESS'
            else 'UNFINISHED'
        end as outcome,
        results.latest.result,
        if(decided.service is null, decided.decided_at, results.latest.ended_at) as ended_at
    from {{ ref('document_status') }} as decided
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
