{%- do no_rows_where(is_empty(last_published('open_documents'))) -%}
with

open_documents as (

    select * from {{ last_published('open_documents') }}

),

resumes as (

    select
        trigger_name,
        least(max(issued_at), {{ run_clock() }}) as resumed_at
    from {{ ref('stg_trigger_commands') }}
    where command = 'RESUME'
    group by trigger_name

),

settings as (

    select
        settings.*,
        greatest(settings.resumed_at, resumes.resumed_at) as resumed_now
    from {{ settings_of_this_run() }} as settings
    left join resumes on settings.trigger_name = resumes.trigger_name

),

reported as (

    {{ reported_by_services(
        ref('stg_trigger_executions'), 'settings', 'resumed_now'
    ) | indent(4) }}

),

brought_up_to_date as (

    select
        open_documents.* except (
            begun, attempts, last_event, last_event_at, last_started_at, last_message, started_at
        ),
        settings.processing_mode,
        awaited.until as awaited_until,
        -- history entries start when the service began, and a document without a key_hash has none
        open_documents.started_at is null
        and open_documents.key_hash is not null
        and reported.delivery_id is not null as begins_now,
        if(
            open_documents.key_hash is null,
            null,
            coalesce(
                open_documents.started_at,
                {{ feed_time(
                    'open_documents.received_at', 'open_documents.landed_at', 'reported.began_at'
                ) }}
            )
        ) as started_at,
        {{ feed_time(
            'open_documents.received_at', 'open_documents.landed_at', 'reported.service_ended_at'
        ) }} as service_ended_at,
        coalesce(open_documents.last_event, 'DISPATCHED') as state_before,
        open_documents.begun or reported.delivery_id is not null as begun,
        -- rows land in any order
        {{ is_later_report(
            'reported.last_event_at', 'reported.last_event', 'reported.attempts', 'open_documents'
        ) | indent(8) }} as is_later,
        coalesce(if(is_later, reported.attempts, null), open_documents.attempts) as attempts,
        if(is_later, reported.last_event, open_documents.last_event) as last_event,
        if(is_later, reported.last_event_at, open_documents.last_event_at) as last_event_at,
        coalesce(if(is_later, reported.last_message, null), open_documents.last_message)
            as last_message,
        greatest(reported.last_started_at, open_documents.last_started_at) as last_started_at,
        reported.delivery_id is not null as has_news,
        reported.retry_failure.at as retry_failed_at,
        reported.retry_failure.message as retry_failure_message,
        {{ suspended_by_service('reported', 'settings.on_retry_failure') | indent(8) }}
            as is_retry_failure,
        coalesce(
            {{ ended_by_service('reported', 'settings.on_retry_failure') | indent(12) }},
            case
                when
                    if(is_later, reported.last_event, open_documents.last_event) = 'STARTED'
                    and timestampadd(
                        millisecond,
                        settings.execution_timeout_ms,
                        greatest(reported.last_started_at, open_documents.last_started_at)
                    ) <= {{ run_clock() }}
                    then if(open_documents.guaranteed, 'INTERRUPTED', 'LOST')
            end
        ) as ended_by
    from open_documents
    inner join settings on open_documents.trigger_name = settings.trigger_name
    left join {{ awaited_until(last_published('waiting_deliveries')) }} as awaited
        on
            open_documents.trigger_name = awaited.trigger_name
            and open_documents.key_hash = awaited.key_hash
    left join reported
        on
            open_documents.delivery_id = reported.delivery_id
            and open_documents.trigger_name = reported.trigger_name
            -- executions from before the trigger was resumed are ignored once later ones are known
            and (
                reported.has_succeeded
                or reported.has_failed
                or coalesce(settings.resumed_at < reported.last_event_at, true)
                or coalesce(open_documents.last_event_at <= settings.resumed_at, true)
            )

),

final as (

    select
        * except (expires_at, is_later, awaited_until),
        coalesce(expires_at, {{ expiry('started_at', 'history_time_to_live_ms') }}) as expires_at,
        -- if a service runs longer than the time to live, the entry stays live until the service
        -- ends and until the last copy that waited for it was received
        greatest(
            coalesce(expires_at, {{ expiry('started_at', 'history_time_to_live_ms') }}),
            if(key_hash is null, null, service_ended_at),
            awaited_until
        ) as completed_expires_at,
        -- copies wait until the service has begun, in a serial trigger until it has ended
        ended_by is null and (not begun or processing_mode = 'serial') as makes_copies_wait,
        coalesce(ended_by in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED'), false) as is_completed,
        '{{ invocation_id }}' as for_run_id
    from brought_up_to_date

)

select * from final
