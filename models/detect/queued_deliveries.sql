{{ config(materialized='ephemeral') }}
-- the post-hook of trigger_queue notes what of the queue is read here, before history_matches runs
-- depends_on: {{ ref('history_matches') }}
with

-- times are columns: a literal is part of the code of the query, which Spark then compiles
-- in each run
event_time as (

    select
        now,
        run_clock
    from inline(array(struct({{ event_time_now() }} as now, {{ run_clock() }} as run_clock)))

),

queued as (

    select
        trigger_queue.*,
        event_time.run_clock,
        trigger_queue.resolver is not null as has_resolver,
        answers.resolver_result,
        answers.message as resolver_message,
        trigger_queue.origin = 'RECOVERY'
        and trigger_queue.recoveries > {{ var('max_recoveries') }} as is_beyond_recovery,
        -- what history has as completed is what the resubmission was for: its own service, which
        -- was interrupted, has not completed
        trigger_queue.origin = 'RECOVERY'
        and trigger_queue.resubmission_id is not null as is_resubmission_again,
        coalesce(trigger_queue.awaited_key_hash = trigger_queue.key_hash, false)
            as had_waited_for_document,
        {{ 'true' if var('history_unavailable') else 'false' }}
        and trigger_queue.uses_history as is_unavailable,
        timestampadd(
            millisecond,
            {{ var('clock_skew_tolerance_ms') }},
            trigger_queue.history_removed_until
        ) as removed_until,
        -- without a service, history entries start at received_at, or later if the delivery had
        -- waited. With a service, they start when the service begins
        case
            when trigger_queue.service is not null then null
            when trigger_queue.had_waited then greatest(trigger_queue.received_at, event_time.now)
            else trigger_queue.received_at
        end as started_at
    from {{ ref('trigger_queue') }} as trigger_queue
    cross join event_time
    left join {{ answers_so_far() }} as answers
        on
            trigger_queue.trigger_name = answers.trigger_name
            and trigger_queue.delivery_id = answers.delivery_id
    where trigger_queue.queue_outcome = 'QUEUED'

),

final as (

    select
        *,
        {{ expiry('started_at', 'history_time_to_live_ms') }} as expires_at
    from queued

)

select * from final
