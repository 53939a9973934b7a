with

open_documents as (

    select * from {{ last_published('open_documents') }}

),

settings as (

    select * from {{ settings_of_this_run() }}

),

told as (

    {{ told_by_services(ref('stg_trigger_executions'), 'settings') | indent(4) }}

),

brought_up_to_date as (

    select
        open_documents.* except (
            begun, attempts, last_event, last_event_at, last_started_at, last_message
        ),
        settings.processing_mode,
        open_documents.begun or told.delivery_id is not null as begun,
        coalesce(told.attempts, open_documents.attempts) as attempts,
        coalesce(told.last_event, open_documents.last_event) as last_event,
        coalesce(told.last_event_at, open_documents.last_event_at) as last_event_at,
        greatest(told.last_started_at, open_documents.last_started_at) as last_started_at,
        coalesce(told.last_message, open_documents.last_message) as last_message,
        told.delivery_id is not null as has_news,
        told.retry_failure.at as retry_failed_at,
        told.retry_failure.message as retry_failure_message,
        {{ suspended_by_service('told', 'settings.on_retry_failure') | indent(8) }}
            as is_retry_failure,
        coalesce(
            {{ ended_by_service('told', 'settings.on_retry_failure') | indent(12) }},
            case
                when
                    coalesce(told.last_event, open_documents.last_event) = 'STARTED'
                    and {{ plus_ms(
                        'greatest(told.last_started_at, open_documents.last_started_at)',
                        'settings.execution_timeout_ms',
                    ) }} <= {{ run_clock() }}
                    then if(open_documents.guaranteed, 'INTERRUPTED', 'LOST')
            end
        ) as ended_by
    from open_documents
    inner join settings on open_documents.trigger_name = settings.trigger_name
    left join told
        on
            open_documents.delivery_id = told.delivery_id
            and open_documents.trigger_name = told.trigger_name

),

final as (

    select
        *,
        -- the copies of a document wait for it while they could not be told anything better
        ended_by is null and (not begun or processing_mode = 'serial') as makes_copies_wait,
        coalesce(ended_by in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED'), false) as is_completed,
        '{{ invocation_id }}' as for_run_id
    from brought_up_to_date

)

select * from final
