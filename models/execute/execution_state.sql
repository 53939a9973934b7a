{#- What has landed since the last run is found by snapshot and not by time, since clocks may
    differ. The read starts one snapshot before the consumed one, since Iceberg cannot start it at
    the latest snapshot of main. A view that is older than the last run reads more, never less. -#}
{%- set executions = source('landing', 'trigger_executions') -%}
{%- set start = adapter.exactly_once.before_consumed('trigger_executions')
    if current_run() else none -%}
{%- set since = " with (`start-snapshot-id` = '" ~ start ~ "')" if start else '' -%}
{#- A serial trigger finishes a document that has begun before an older one that landed late. The
    window is repeated as text, since Spark does not find a named window in a view. -#}
{%- set in_line = 'partition by trigger_name, has_ended '
    ~ "order by processing_mode = 'serial' and begun desc, received_at, delivery_id" -%}
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

-- executions since the last run; earlier ones are in open_documents
news as (

    select executions.*
    from (
        select
            *,
            coalesce({{ reported_at('executions') }}, {{ present_time() }}) as reported_at
        from {{ executions }}{{ since }} as executions
    ) as executions
    inner join open_documents
        on
            executions.delivery_id = open_documents.delivery_id
            and executions.trigger_name = open_documents.trigger_name
    inner join settings on executions.trigger_name = settings.trigger_name
    where
        {{ is_later_report(
            'executions.reported_at',
            'executions.event',
            'if(executions.reported_at <= settings.resumed_at, null, '
            ~ reported_attempt('executions') ~ ')',
            'open_documents'
        ) | indent(8) }}

),

reported as (

    {{ reported_by_services('news', 'settings') | indent(4) }}

),

brought_up_to_date as (

    select
        open_documents.* except (
            begun, attempts, last_event, last_event_at, last_started_at, last_message
        ),
        settings.processing_mode,
        settings.retry_interval_ms,
        settings.execution_timeout_ms,
        settings.resumed_at,
        states.enabled,
        states.is_suspended,
        array_join(states.suspensions.cause, ' and ') as suspended_causes,
        open_documents.begun or reported.delivery_id is not null as begun,
        coalesce(reported.attempts, open_documents.attempts) as attempts,
        coalesce(reported.last_event, open_documents.last_event) as last_event,
        coalesce(reported.last_event_at, open_documents.last_event_at) as last_event_at,
        greatest(reported.last_started_at, open_documents.last_started_at) as last_started_at,
        coalesce(reported.last_message, open_documents.last_message) as last_message,
        {{ ended_by_service('reported', 'settings.on_retry_failure') | indent(8) }} is not null
            as has_ended,
        {{ suspended_by_service('reported', 'settings.on_retry_failure') | indent(8) }}
            as suspends_trigger
    from open_documents
    inner join settings on open_documents.trigger_name = settings.trigger_name
    inner join states on open_documents.trigger_name = states.trigger_name
    left join reported
        on
            open_documents.delivery_id = reported.delivery_id
            and open_documents.trigger_name = reported.trigger_name

),

with_retry as (

    select
        *,
        timestampadd(millisecond, retry_interval_ms, last_event_at) as retry_at
    from brought_up_to_date

),

queued as (

    select
        *,
        bool_or(suspends_trigger) over (partition by trigger_name) as is_to_be_suspended,
        row_number() over ({{ in_line }}) as queue_number,
        lag(delivery_id) over ({{ in_line }}) as delivery_before,
        timestampadd(millisecond, execution_timeout_ms, last_started_at) as interrupted_at,
        timestampadd(millisecond, execution_timeout_ms, greatest(decided_at, resumed_at, retry_at))
            as overdue_at
    from with_retry

),

with_state as (

    select
        *,
        case
            when has_ended then 'ENDED'
            when last_event = 'STARTED' and interrupted_at <= {{ present_time() }}
                then 'INTERRUPTED'
            when last_event = 'STARTED' then 'STARTED'
            when not enabled then 'DISABLED'
            when is_suspended or is_to_be_suspended then 'SUSPENDED'
            when processing_mode = 'serial' and queue_number > 1 then 'BEHIND'
            when last_event = 'TRANSIENT_ERROR' and retry_at > {{ present_time() }} then 'RETRY'
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
            when 'ENDED' then 'its service has ended; the next run takes it in'
            when 'INTERRUPTED'
                then if(
                    guaranteed,
                    'nothing was heard of its service in time; the next run brings it back',
                    'nothing was heard of its service in time; the next run gives it up as LOST'
                )
            when 'STARTED' then 'its service is at work'
            when 'DISABLED' then 'its trigger is disabled'
            when 'SUSPENDED'
                then if(
                    is_suspended,
                    concat('its trigger is suspended: ', suspended_causes),
                    'its trigger has used up its retries; the next run suspends it'
                )
            when 'BEHIND'
                then concat('its trigger is serial and finishes ', delivery_before, ' first')
            when 'RETRY' then 'an attempt has failed; it is repeated at retry_at'
            when 'DISPATCHED' then if(
                overdue_at <= {{ present_time() }},
                'its service should have started long ago',
                'its service should run now'
            )
        end as state_in_words,
        state = 'DISPATCHED' and overdue_at <= {{ present_time() }} as is_overdue,
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
