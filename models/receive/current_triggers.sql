{%- set resumed = triggers_resumed_by_monitor() -%}
with

settings as (

    select * from {{ settings_of_this_run() }}

),

states as (

    select * from {{ last_published('trigger_states') }}

),

commands as (

    select
        trigger_name,
        command as event,
        'OPERATOR' as cause,
        issued_at as happened_at,
        issued_by as caused_by,
        reason,
        struct(issued_at as at, command_id as id) as place
    from {{ ref('stg_trigger_commands') }}
    where command in ('SUSPEND', 'RESUME')

),

retry_failures as (

    select
        trigger_name,
        'SUSPEND' as event,
        'RETRY_FAILURE' as cause,
        retry_failed_at as happened_at,
        delivery_id as caused_by,
        retry_failure_message as reason,
        struct(retry_failed_at as at, delivery_id as id) as place
    from {{ ref('documents_in_execution') }}
    where is_retry_failure

),

events as (

    select * from commands
    union all
    select * from retry_failures

),

last_events as (

    select
        trigger_name,
        max_by(struct(event, cause, happened_at, caused_by, reason), place) as last_event,
        max(if(event = 'RESUME', happened_at, null)) as resumed_at
    from events
    group by trigger_name

),

-- a trigger that the seed no longer has, given up by its operator, once nothing of it is left
retired as (

    select distinct commands.trigger_name
    from {{ ref('stg_trigger_commands') }} as commands
    left anti join {{ last_published('waiting_deliveries') }} as waiting
        on commands.trigger_name = waiting.trigger_name
    left anti join {{ last_published('open_documents') }} as open_documents
        on commands.trigger_name = open_documents.trigger_name
    where commands.command = 'RETIRE'

),

resumed_by_monitor as (

    select explode(cast(array(
        {%- for name in resumed %}{{ sql_text(name) }}{{ ', ' if not loop.last }}{% endfor -%}
    ) as array<string>)) as trigger_name

),

known as (

    select
        settings.*,
        states.trigger_name is null as is_first_seen,
        not settings.is_in_seed and retired.trigger_name is not null as is_retired,
        states.history_removed_until,
        coalesce(states.took_documents, false) as took_documents,
        states.known_since_run_id,
        last_events.last_event,
        -- attempts count anew from here on
        if(
            resumed_by_monitor.trigger_name is null,
            last_events.resumed_at,
            greatest(last_events.resumed_at, {{ run_clock() }})
        ) as resumed_at,
        case
            when states.trigger_name is null then settings.start_from
            else states.takes_from
        end as takes_from,
        -- history that can be read again lifts the suspension it has caused, a resource that is
        -- available again the one that its failure has caused
        coalesce(states.is_suspended, false)
        and not (
            states.suspended_cause = 'HISTORY_ERROR' and not {{ var('history_unavailable') }}
        )
        and resumed_by_monitor.trigger_name is null as was_suspended,
        coalesce(states.is_suspended, false) as was_published_suspended,
        states.suspended_cause,
        states.suspended_since,
        states.suspended_by,
        states.suspended_reason
    from settings
    left join states on settings.trigger_name = states.trigger_name
    left join last_events on settings.trigger_name = last_events.trigger_name
    left join resumed_by_monitor on settings.trigger_name = resumed_by_monitor.trigger_name
    left join retired on settings.trigger_name = retired.trigger_name

),

with_state as (

    select
        * except (suspended_cause, suspended_since, suspended_by, suspended_reason),
        case
            when last_event.event is null then was_suspended
            else last_event.event = 'SUSPEND'
        end as is_suspended,
        coalesce(last_event.cause, suspended_cause) as suspended_cause,
        coalesce(last_event.happened_at, suspended_since) as suspended_since,
        coalesce(last_event.caused_by, suspended_by) as suspended_by,
        coalesce(last_event.reason, suspended_reason) as suspended_reason
    from known

),

final as (

    select
        *,
        enabled and is_in_seed and not is_suspended as takes_documents,
        -- what waits is written anew while the trigger takes documents and once it stops
        took_documents or (enabled and is_in_seed and not is_suspended) as rewrites_waiting,
        is_first_seen
        and takes_from is not null
        and {{ adapter.exactly_once.run.number if execute and adapter.exactly_once.run else 1 }} > 1
            as takes_earlier_landings,
        '{{ invocation_id }}' as for_run_id
    from with_state

)

select * from final
