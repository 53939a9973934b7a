{%- do no_rows_where(
    queue_facts().triggers_are_as_published
    and not has_found('suspended')
    and not has_found('opened')
    and is_empty(ref('in_execution_this_run'))
    and not has_found_expired()
) -%}
-- depends_on: {{ ref('trigger_queue') }}
-- depends_on: {{ ref('in_execution_this_run') }}
{{ config(incremental_strategy='insert_overwrite') }}
with

triggers_this_run as (

    select * from {{ ref('triggers_this_run') }}

),

suspended_by_deliveries as (

    select
        trigger_name,
        struct(
            {{ run_clock() }} as since,
            decided_by as cause,
            min_by(delivery_id, struct(received_at, delivery_id)) as caused_by,
            min_by(message, struct(received_at, delivery_id)) as reason
        ) as suspension
    from {{ ref('decisions') }}
    where status = 'SUSPENDED'
    group by trigger_name, decided_by

),

-- a failure that landed before the decision suspends the trigger from the end of this run on
suspended_by_services as (

    select
        trigger_name,
        struct(
            max(retry_failure).at as since,
            'RETRY_FAILURE' as cause,
            max_by(delivery_id, retry_failure) as caused_by,
            max(retry_failure).message as reason
        ) as suspension
    from {{ ref('opened_this_run') }}
    where is_retry_failure
    group by trigger_name

),

suspended as (

    select
        trigger_name,
        sort_array(collect_list(suspension), false) as suspensions
    from (
        select
            trigger_name,
            explode(suspensions) as suspension
        from triggers_this_run
        union all
        select * from suspended_by_deliveries
        union all
        select * from suspended_by_services
    ) as all_suspensions
    group by trigger_name

),

removal as (

    select
        trigger_name,
        max(expires_at) as removed_until
    -- including this run's entries: those of a late delivery may have expired already
    from {{ ref('history_ledger') }}
    where expires_at <= {{ history_removal_bound() }}
    group by trigger_name

),

final as (

    select
        triggers_this_run.trigger_name,
        triggers_this_run.enabled and triggers_this_run.is_in_seed as enabled,
        suspended.trigger_name is not null as is_suspended,
        suspended.suspensions[0].cause as suspended_cause,
        suspended.suspensions[0].since as suspended_since,
        suspended.suspensions[0].caused_by as suspended_by,
        suspended.suspensions[0].reason as suspended_reason,
        coalesce(suspended.suspensions, array()) as suspensions,
        triggers_this_run.resumed_at,
        greatest(triggers_this_run.history_removed_until, removal.removed_until)
            as history_removed_until,
        triggers_this_run.takes_documents as took_documents,
        triggers_this_run.takes_from,
        coalesce(triggers_this_run.known_since_run_id, '{{ invocation_id }}') as known_since_run_id,
        triggers_this_run.settings
    from triggers_this_run
    left join suspended on triggers_this_run.trigger_name = suspended.trigger_name
    left join removal on triggers_this_run.trigger_name = removal.trigger_name
    where not triggers_this_run.is_retired

)

select * from final
