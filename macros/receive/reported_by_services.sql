{% macro is_report() -%}
    {#- Whether a row of landing.trigger_executions has an event of the contract. -#}
    event in ('STARTED', 'SUCCESS', 'ERROR', 'TRANSIENT_ERROR')
{%- endmacro %}

{% macro reported_at(executions) -%}
    {#- The time of a report, a row of landing.trigger_executions; null if it has none. -#}
    coalesce(
        {{ executions }}.recorded_at, {{ executions }}.ended_at, {{ executions }}.started_at
    )
{%- endmacro %}

{% macro reported_attempt(executions) -%}
    {#- The attempt that a report is of, a row of landing.trigger_executions; the first if it has
        none. `greatest` ignores nulls. -#}
    greatest({{ executions }}.attempt, 1)
{%- endmacro %}

{% macro reported_by_services(executions, settings, resumed_now='resumed_at') -%}
    {#- What services have reported of each document: one row per delivery and trigger. Of several
        reports SUCCESS or ERROR wins, else the latest; at the same instant STARTED comes before the
        others. Rows with an unknown event are left out.

        executions: a relation with the columns of landing.trigger_executions; settings: one with
        trigger_name, max_retry_attempts, on_retry_failure and resumed_at, when the trigger was
        resumed: attempts recorded until then no longer count. `resumed_now`: the column that also
        has the resumptions that this run reads. It affects the count of attempts only: a failure
        that had ended its document before stays.

        A report without any time gets the time at which it is read, since an entry of history
        without times would match no copy. A view outlives the run, so it uses the time of the
        query. -#}
    {%- set is_of_run = current_run() and model.config.materialized != 'view' -%}
    {%- set read_at = run_clock() if is_of_run else present_time() -%}
    select
        executions.delivery_id,
        executions.trigger_name,
        max_by(executions.event, executions.report) as last_event,
        max(executions.report.at) as last_event_at,
        max(
            if(
                executions.report.at <= settings.{{ resumed_now }}, null, executions.attempt
            )
        ) as attempts,
        max_by(executions.message, executions.report) as last_message,
        max(
            case
                when executions.event = 'STARTED'
                    then greatest(executions.started_at, executions.report.at)
            end
        ) as last_started_at,
        -- when the service began: from the first known executions of the document
        coalesce(
            min(executions.started_at), min(executions.ended_at), min(executions.report.at)
        ) as began_at,
        max(
            if(
                executions.event in ('SUCCESS', 'ERROR')
                or (
                    executions.event = 'TRANSIENT_ERROR'
                    and executions.attempt > settings.max_retry_attempts
                    and settings.on_retry_failure = 'throw'
                ),
                coalesce(executions.ended_at, executions.report.at),
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
                and not coalesce(executions.report.at <= settings.resumed_at, false),
                struct(executions.report.at, executions.message),
                null
            )
        ) as retry_failure
    from (
        select
            * except (attempt),
            {{ reported_attempt('executions') }} as attempt,
            struct(
                event in ('SUCCESS', 'ERROR') as is_final,
                coalesce({{ reported_at('executions') }}, {{ read_at }}) as at,
                event != 'STARTED' as is_end
            ) as report
        from {{ executions }} as executions
        where {{ is_report() }}
    ) as executions
    inner join {{ settings }} as settings on executions.trigger_name = settings.trigger_name
    group by executions.delivery_id, executions.trigger_name
{%- endmacro %}

{% macro is_later_report(at, event, attempt, known) -%}
    {#- Whether a report of a service is later than what is known of its document; rows land in any
        order. SUCCESS and ERROR always are. Any other report is later by its time or, if the
        writer's clock is slow, by its attempt or as the end of the attempt known as started.

        at, event, attempt: of the report; known: a relation with last_event_at, last_event and
        attempts, which are 0 if the trigger was resumed since. -#}
    coalesce(
        {{ event }} in ('SUCCESS', 'ERROR')
        or ({{ event }} is not null and {{ known }}.last_event_at is null)
        or struct({{ at }}, {{ event }} != 'STARTED')
        > struct({{ known }}.last_event_at, {{ known }}.last_event != 'STARTED')
        or (
            {{ known }}.attempts > 0
            and (
                {{ attempt }} > {{ known }}.attempts
                or (
                    {{ attempt }} = {{ known }}.attempts
                    and {{ event }} != 'STARTED'
                    and {{ known }}.last_event = 'STARTED'
                )
            )
        ),
        false
    )
{%- endmacro %}

{% macro ended_by_service(reported, on_retry_failure) -%}
    {#- How a document has ended by what its service has reported (see reported_by_services); null
        if it has not. SUCCESS wins, whatever else was reported. -#}
    case
        when {{ reported }}.has_succeeded then 'SUCCESS'
        when {{ reported }}.has_failed then 'ERROR'
        when {{ reported }}.retry_failure is not null and {{ on_retry_failure }} = 'throw'
            then 'RETRIES_EXHAUSTED'
    end
{%- endmacro %}

{% macro suspended_by_service(reported, on_retry_failure) -%}
    {#- Whether what a service has reported of a document (see reported_by_services) suspends its
        trigger, even if the document itself has been interrupted since. -#}
    coalesce(
        {{ reported }}.retry_failure is not null
        and not {{ reported }}.has_succeeded
        and not {{ reported }}.has_failed
        and {{ on_retry_failure }} = 'suspend',
        false
    )
{%- endmacro %}
