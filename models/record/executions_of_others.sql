{{ config(materialized='ephemeral') }}
with

strays as (

    select
        executions.delivery_id,
        executions.trigger_name,
        executions.service,
        count(*) as executions,
        bool_or(executions.event = 'SUCCESS') as has_succeeded,
        max_by(executions.event, {{ reported_at('executions') }}) as last_event,
        max(executions.recorded_at) as last_recorded_at
    from {{ ref('stg_trigger_executions') }} as executions
    left anti join {{ ref('in_execution_this_run') }} as open_before
        on
            executions.delivery_id = open_before.delivery_id
            and executions.trigger_name = open_before.trigger_name
    left anti join {{ ref('opened_this_run') }} as opened
        on
            executions.delivery_id = opened.delivery_id
            and executions.trigger_name = opened.trigger_name
    where {{ is_report() }}
    group by executions.delivery_id, executions.trigger_name, executions.service

),

of_no_event as (

    select
        'UNKNOWN_EVENT' as event,
        delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        service as reference_id,
        concat(
            count(*),
            ' executions say ',
            coalesce(event, 'no event'),
            ', they change nothing: STARTED, SUCCESS, ERROR and TRANSIENT_ERROR are known'
        ) as message
    from {{ ref('stg_trigger_executions') }}
    where not coalesce({{ is_report() }}, false)
    group by delivery_id, trigger_name, service, event

),

of_others as (

    select
        strays.has_succeeded and decided.run_id != '{{ invocation_id }}' as settles_doubts,
        case
            when decided.delivery_id is null then 'EARLY'
            when settles_doubts then 'LATE_SUCCESS'
            else 'IGNORED'
        end as event,
        strays.delivery_id,
        strays.trigger_name,
        decided.document_type,
        strays.service as reference_id,
        concat(
            strays.executions,
            ' executions, up to ',
            coalesce(strays.last_event, 'nothing'),
            coalesce(concat(' recorded at ', strays.last_recorded_at), ''),
            case
                when decided.delivery_id is null
                    then ': reported before it was decided, they count once it is'
                when settles_doubts
                    then concat(
                        ': it is ', decided.status,
                        ' and not open; what was in doubt before about its key is settled'
                    )
                else concat(': it is ', decided.status, ' and not open, they change nothing')
            end
        ) as message
    from strays
    left join {{ ref('document_status') }} as decided
        on
            strays.delivery_id = decided.delivery_id
            and strays.trigger_name = decided.trigger_name

),

final as (

    select * except (settles_doubts) from of_others
    union all
    select * from of_no_event

)

select * from final
