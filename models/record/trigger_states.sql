-- depends_on: {{ ref('trigger_queue') }}
{{ config(materialized='ledger', write='replace') }}
{%- set skew = var('clock_skew_tolerance_ms') -%}
with

current_triggers as (

    select * from {{ ref('current_triggers') }}

),

-- a run that meets both causes waits for the one that is harder to lift
suspending as (

    select
        trigger_name,
        max(if(decided_by = 'RESOLVER_ERROR', decided_by, null)) as by_resolver,
        min_by(delivery_id, struct(received_at, delivery_id)) as delivery_id,
        min_by(message, struct(received_at, delivery_id)) as message
    from {{ ref('decisions') }}
    where status = 'SUSPENDED'
    group by trigger_name

),

removal as (

    select
        trigger_name,
        max(expires_at) as removed_until
    -- with what this run has added: a late delivery's entries may have expired already; what
    -- expires at the border itself is removed with the partition behind it, and counts from now on
    from {{ ref('document_history') }}
    where expires_at <= {{ history_removal_bound() }}
    group by trigger_name

),

final as (

    select
        current_triggers.trigger_name,
        current_triggers.enabled and current_triggers.is_in_seed as enabled,
        current_triggers.is_suspended or suspending.trigger_name is not null as is_suspended,
        case
            when suspending.trigger_name is not null
                then coalesce(suspending.by_resolver, 'HISTORY_ERROR')
            when current_triggers.is_suspended then current_triggers.suspended_cause
        end as suspended_cause,
        case
            when suspending.trigger_name is not null then {{ run_clock() }}
            when current_triggers.is_suspended then current_triggers.suspended_since
        end as suspended_since,
        case
            when suspending.trigger_name is not null then suspending.delivery_id
            when current_triggers.is_suspended then current_triggers.suspended_by
        end as suspended_by,
        case
            when suspending.trigger_name is not null then suspending.message
            when current_triggers.is_suspended then current_triggers.suspended_reason
        end as suspended_reason,
        greatest(current_triggers.history_removed_until, removal.removed_until)
            as history_removed_until,
        current_triggers.takes_documents as took_documents,
        current_triggers.takes_from,
        coalesce(current_triggers.known_since_run_id, '{{ invocation_id }}') as known_since_run_id
    from current_triggers
    left join suspending on current_triggers.trigger_name = suspending.trigger_name
    left join removal on current_triggers.trigger_name = removal.trigger_name
    where not current_triggers.is_retired

)

select * from final
