{{ config(incremental_strategy='append') }}
{#- document_status is read only if executions have landed for a document that is not open, or with
    an event that the contract does not have. -#}
{%- set strays -%}
    select 1
    from {{ ref('stg_trigger_executions') }} as executions
    left anti join {{ ref('in_execution_this_run') }} as documents
        on executions.delivery_id = documents.delivery_id
        and executions.trigger_name = documents.trigger_name
    union all
    select 1 from {{ ref('stg_trigger_executions') }}
    where not coalesce({{ is_report() }}, false)
    limit 1
{%- endset -%}
{%- set run = current_run() -%}
{%- set has_commands = not execute or (run and run.has_landed('trigger_commands')) -%}
{%- set has_strays = not execute or (
    run and run.has_landed('trigger_executions') and run_query(strays).rows | length > 0
) -%}
{%- do no_rows_where(
    not has_found('left_out')
    and not has_found('opened')
    and is_empty(ref('in_execution_this_run'))
    and is_empty(ref('resubmissions_this_run'))
    and not has_commands
    and not has_strays
    and 'trigger_states' in run.without_rows
) -%}
-- depends_on: {{ ref('resubmissions_this_run') }}
with

left_out as (

    select
        if(
            queue_outcome = 'UNROUTED' and destination is not null,
            'UNKNOWN_DESTINATION',
            queue_outcome
        ) as event,
        delivery_id,
        trigger_name,
        document_type,
        cast(null as string) as reference_id,
        case
            when queue_outcome = 'NOT_TAKEN' then 'received before the trigger takes deliveries'
            when destination is not null
                then concat('no trigger is named ', destination)
            else concat(
                'no trigger of api ',
                transport_api,
                ' subscribes to ',
                coalesce(document_type, 'no document type')
            )
        end as message
    from {{ ref('trigger_queue') }}
    where queue_outcome in ('UNROUTED', 'NOT_TAKEN')

),

ended as (

    select
        ended_by as event,
        delivery_id,
        trigger_name,
        document_type,
        service as reference_id,
        case ended_by
            when 'LOST'
                then 'the service was interrupted and a volatile document does not come back'
            when 'INTERRUPTED'
                then concat(
                    'the service was interrupted, comes back as ',
                    landed_delivery_id,
                    '/recovery-',
                    recoveries + 1
                )
            when 'RETRIES_EXHAUSTED'
                then concat_ws(
                    ': ', concat('the service has failed ', attempts, ' times'), last_message
                )
            when 'ERROR' then concat_ws(': ', 'the service has ended in error', last_message)
            else last_message
        end as message
    from (
        {% set ended_columns = 'ended_by, delivery_id, trigger_name, document_type, service, '
            ~ 'landed_delivery_id, recoveries, attempts, last_message' -%}
        select {{ ended_columns }} from {{ ref('in_execution_this_run') }}
        union all
        select {{ ended_columns }} from {{ ref('opened_this_run') }}
    )
    where ended_by is not null

),

triggers_suspended as (

    select
        'SUSPENDED' as event,
        cast(null as string) as delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        suspension.cause as reference_id,
        concat_ws(': ', suspension.cause, suspension.caused_by, suspension.reason) as message
    from (
        select
            after_run.trigger_name,
            explode(
                array_except(after_run.suspensions, before_run.published_suspensions)
            ) as suspension
        from {{ ref('trigger_states') }} as after_run
        inner join {{ ref('triggers_this_run') }} as before_run
            on after_run.trigger_name = before_run.trigger_name
    )

),

triggers_resumed as (

    select
        'RESUMED' as event,
        cast(null as string) as delivery_id,
        after_run.trigger_name,
        cast(null as string) as document_type,
        cast(null as string) as reference_id,
        if(
            after_run.enabled,
            'the trigger takes deliveries again',
            'nothing suspends the trigger any more, but it is disabled'
        ) as message
    from {{ ref('trigger_states') }} as after_run
    inner join {{ ref('triggers_this_run') }} as before_run
        on after_run.trigger_name = before_run.trigger_name
    where not after_run.is_suspended and size(before_run.published_suspensions) > 0

),

retired as (

    select
        'RETIRED' as event,
        cast(null as string) as delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        cast(null as string) as reference_id,
        'the trigger is no longer known' as message
    from {{ ref('triggers_this_run') }}
    where is_retired

),

-- history entries that this run removes
removals as (

    select
        'REMOVED' as event,
        cast(null as string) as delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        cast({{ number_of_entries() }} as string) as reference_id,
        concat('entries of history that expired before ', {{ history_removal_bound() }}) as message
    from {{ ref('history_ledger') }}
    where {{ has_expired() }}
    group by trigger_name

),

final as (

    select * from left_out
    union all
    select * from ended
    union all
    select * from {{ ref('answered_resubmissions') }}
    union all
    select * from triggers_suspended
    union all
    select * from triggers_resumed
    union all
    select * from retired
    union all
    select * from removals
    {% if has_commands -%}
        union all
        select * from {{ ref('commands_not_followed') }}
    {% endif -%}
    {% if has_strays -%}
        union all
        select * from {{ ref('executions_of_others') }}
    {%- endif %}

)

select
    *,
    {{ run_clock() }} as happened_at,
    '{{ invocation_id }}' as run_id
from final
