{% macro reported_by_services(executions, settings, resumed_now='resumed_at') -%}
    {#- What services have reported of each document: one row per delivery and trigger. Of several
        reports an end rules, else the latest; of the same instant a start comes first. Rows with an
        event that is none are left out.

        executions: a relation with the columns of landing.trigger_executions; settings: one with
        trigger_name, max_retry_attempts, on_retry_failure and resumed_at: attempts recorded until
        then, when the trigger was resumed, no longer count. `resumed_now`, the same with what this
        run has heard, moves the count, and takes back no failure that had ended its document
        before. -#}
    select
        executions.delivery_id,
        executions.trigger_name,
        max_by(executions.event, executions.spoken) as last_event,
        max(executions.spoken.at) as last_event_at,
        max(
            if(
                executions.spoken.at <= settings.{{ resumed_now }}, null, executions.attempt
            )
        ) as attempts,
        max_by(executions.message, executions.spoken) as last_message,
        max(
            case
                when executions.event = 'STARTED'
                    then greatest(executions.started_at, executions.recorded_at)
            end
        ) as last_started_at,
        -- when the service began: by the first executions known of a document
        coalesce(
            min(executions.started_at), min(executions.ended_at), min(executions.recorded_at)
        ) as began_at,
        max(
            if(
                executions.event in ('SUCCESS', 'ERROR')
                or (
                    executions.event = 'TRANSIENT_ERROR'
                    and executions.attempt > settings.max_retry_attempts
                    and settings.on_retry_failure = 'throw'
                ),
                coalesce(executions.ended_at, executions.recorded_at),
                null
            )
        ) as service_ended_at,
        bool_or(executions.event = 'SUCCESS') as has_succeeded,
        bool_or(executions.event = 'ERROR') as has_failed,
        -- the last attempt that the trigger allows has failed, even if another was begun since
        max(
            if(
                executions.event = 'TRANSIENT_ERROR'
                and executions.attempt > settings.max_retry_attempts
                and not coalesce(executions.spoken.at <= settings.resumed_at, false),
                struct(executions.spoken.at, executions.message),
                null
            )
        ) as retry_failure
    from (
        select
            *,
            struct(
                event in ('SUCCESS', 'ERROR') as is_final,
                coalesce(recorded_at, ended_at, started_at) as at,
                event != 'STARTED' as is_end
            ) as spoken
        from {{ executions }}
        where {{ is_report() }}
    ) as executions
    inner join {{ settings }} as settings on executions.trigger_name = settings.trigger_name
    group by executions.delivery_id, executions.trigger_name
{%- endmacro %}
