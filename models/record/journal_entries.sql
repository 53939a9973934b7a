{{ config(materialized='ledger') }}
with

left_out as (

    select
        if(place = 'UNROUTED', if(destination is null, 'UNROUTED', 'UNKNOWN_DESTINATION'), place)
            as event,
        delivery_id,
        trigger_name,
        document_type,
        cast(null as string) as reference_id,
        case
            when place = 'NOT_TAKEN' then 'received before the trigger takes deliveries'
            when destination is not null
                then concat('no trigger is named ', destination)
            else concat('no trigger subscribes to ', coalesce(document_type, 'no document type'))
        end as message
    from {{ ref('trigger_queue') }}
    where place in ('UNROUTED', 'NOT_TAKEN')

),

lost as (

    select
        'LOST' as event,
        delivery_id,
        trigger_name,
        document_type,
        cast(null as string) as reference_id,
        'the service was interrupted and a volatile document does not come back' as message
    from {{ ref('documents_in_execution') }}
    where ended_by = 'LOST'

),

resubmissions as (

    select
        if(is_accepted, 'RESUBMITTED', 'REFUSED') as event,
        resubmitted_delivery_id as delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        resubmission_id as reference_id,
        if(
            is_accepted,
            concat('comes as ', delivery_id),
            case refused_for
                when 'NO_DECISION' then 'no decision is known for it'
                when 'RESUBMITTED' then 'it was resubmitted before'
                else concat('only a document in doubt can be resubmitted, this is ', refused_for)
            end
        ) as message
    from {{ ref('resubmission_requests') }}
    where is_accepted or refused_for != 'REPEATED'

),

triggers_changed as (

    select
        if(after_run.is_suspended, 'SUSPENDED', 'RESUMED') as event,
        cast(null as string) as delivery_id,
        after_run.trigger_name,
        cast(null as string) as document_type,
        after_run.suspended_cause as reference_id,
        if(
            after_run.is_suspended,
            concat_ws(
                ': ',
                after_run.suspended_cause,
                after_run.suspended_by,
                after_run.suspended_reason
            ),
            'the trigger takes deliveries again'
        ) as message
    from {{ ref('trigger_states') }} as after_run
    inner join {{ ref('current_triggers') }} as before_run
        on after_run.trigger_name = before_run.trigger_name
    where after_run.is_suspended != before_run.was_published_suspended

),

-- of history that this run's publication removes
removals as (

    select
        'REMOVED' as event,
        cast(null as string) as delivery_id,
        trigger_name,
        cast(null as string) as document_type,
        cast(count(*) as string) as reference_id,
        concat('entries of history that expired before ', {{ history_removal_bound() }}) as message
    from {{ ref('document_history') }}
    where expires_at < {{ history_removal_bound() }}
    group by trigger_name

),

final as (

    select * from left_out
    union all
    select * from lost
    union all
    select * from resubmissions
    union all
    select * from triggers_changed
    union all
    select * from removals

)

select
    *,
    {{ run_clock() }} as happened_at,
    '{{ invocation_id }}' as run_id
from final
