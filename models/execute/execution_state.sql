{#- Nothing is told of a document before it was decided, so executions are worth reading from the
    oldest open one on. The literal lets Iceberg leave out the files before it; a view that is older
    than the last run reads more, never less. -#}
{%- set oldest = run_query(
    'select cast(coalesce(min(decided_at), ' ~ run_clock() ~ ') as string) from '
    ~ ref('open_documents')
).rows[0][0] if execute and adapter.exactly_once.run else '1970-01-01' -%}
-- depends_on: {{ ref('published_runs') }}
with

open_documents as (

    select * from {{ ref('open_documents') }}

),

settings as (

    select * from {{ ref('trigger_settings') }}

),

states as (

    select * from {{ ref('trigger_states') }}

),

told as (

    select
        delivery_id,
        trigger_name,
        max(coalesce(recorded_at, ended_at, started_at)) as told_at
    from {{ source('landing', 'trigger_executions') }}
    where recorded_at is null or recorded_at >= timestamp '{{ oldest }}'
    group by delivery_id, trigger_name

),

queued as (

    select
        open_documents.*,
        settings.processing_mode,
        states.enabled,
        states.is_suspended,
        states.suspended_cause,
        row_number() over (
            partition by open_documents.trigger_name
            order by open_documents.received_at, open_documents.delivery_id
        ) as queue_number,
        lag(open_documents.delivery_id) over (
            partition by open_documents.trigger_name
            order by open_documents.received_at, open_documents.delivery_id
        ) as delivery_before,
        -- told since the last run, which the next one takes in
        coalesce(
            told.told_at > coalesce(open_documents.last_event_at, open_documents.decided_at), false
        ) as has_news,
        {{ plus_ms('open_documents.last_event_at', 'settings.retry_interval_ms') }} as retry_at,
        {{ plus_ms('open_documents.last_started_at', 'settings.execution_timeout_ms') }}
            as interrupted_at,
        {{ plus_ms('open_documents.decided_at', 'settings.execution_timeout_ms') }} as overdue_at
    from open_documents
    inner join settings on open_documents.trigger_name = settings.trigger_name
    inner join states on open_documents.trigger_name = states.trigger_name
    left join told
        on
            open_documents.delivery_id = told.delivery_id
            and open_documents.trigger_name = told.trigger_name

),

with_state as (

    select
        *,
        case
            when has_news then 'TOLD'
            when last_event = 'STARTED' and interrupted_at <= current_timestamp()
                then 'INTERRUPTED'
            when last_event = 'STARTED' then 'STARTED'
            when not enabled then 'DISABLED'
            when is_suspended then 'SUSPENDED'
            when processing_mode = 'serial' and queue_number > 1 then 'BEHIND'
            when last_event = 'TRANSIENT_ERROR' and retry_at > current_timestamp() then 'RETRY'
            else 'DISPATCHED'
        end as state
    from queued

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        document_type,
        document_key,
        condition_name,
        service,
        landed_delivery_id,
        resubmission_id,

        -- state
        state,
        case state
            when 'TOLD' then 'its service has told something; the next run takes it in'
            when 'INTERRUPTED'
                then if(
                    guaranteed,
                    'nothing was heard of its service in time; the next run brings it back',
                    'nothing was heard of its service in time; the next run gives it up as LOST'
                )
            when 'STARTED' then 'its service is at work'
            when 'DISABLED' then 'its trigger is disabled'
            when 'SUSPENDED' then concat('its trigger is suspended: ', suspended_cause)
            when 'BEHIND'
                then concat('its trigger is serial and finishes ', delivery_before, ' first')
            when 'RETRY' then 'an attempt has failed; it is repeated at retry_at'
            when 'DISPATCHED' then if(
                not begun and overdue_at <= current_timestamp(),
                'its service should have started long ago',
                'its service should run now'
            )
        end as state_in_words,
        state = 'DISPATCHED' and not begun and overdue_at <= current_timestamp() as is_overdue,
        processing_mode,
        cast(queue_number as bigint) as queue_number,
        attempts,
        last_event,
        last_message,

        -- times
        received_at,
        landed_received_at,
        decided_at,
        last_event_at,
        last_started_at,
        if(state = 'RETRY', retry_at, null) as retry_at
    from with_state

)

select * from final
