-- depends_on: {{ ref('resolver_answers') }}
with

-- a delivery that comes after one whose resolver has not answered waits for a later run
examined as (

    select
        * except (is_behind, rule_id, status, decided_by),
        is_behind or is_behind_unanswered as is_behind,
        if(is_behind_unanswered, null, rule_id) as rule_id,
        if(is_behind_unanswered, null, status) as status,
        if(is_behind_unanswered, null, decided_by) as decided_by
    from {{ ref('examined_deliveries') }}

),

final as (

    select
        examined.delivery_id,
        examined.trigger_name,
        examined.landed_delivery_id,
        examined.landed_received_at,
        examined.origin,
        examined.recoveries,
        examined.resubmission_id,
        examined.transport,
        examined.document_type,
        examined.guaranteed,
        examined.redelivery_count,
        examined.received_at,
        examined.landed_at,
        examined.waiting_since,
        examined.document_key,
        examined.key_source,
        examined.key_hash,
        examined.key_check,
        examined.document_hash,
        examined.condition_name,
        examined.service,
        examined.redelivery,
        examined.key_state,
        examined.history_state,
        nullif(examined.resolver_result, 'NOT_ASKED') as resolver_result,
        examined.resolver_message as message,
        if(
            examined.history_state = 'UNAVAILABLE',
            null,
            try_element_at(
                filter(examined.entries, e -> e.live_until > examined.received_at), 1
            ).delivery_id
        ) as matched_delivery_id,
        examined.rule_id,
        examined.status,
        examined.decided_by,
        coalesce(examined.status != 'SUSPENDED', false) as is_decided,
        case
            when examined.is_behind then 'BEHIND'
            when examined.status = 'SUSPENDED' then 'SUSPENDED'
            when examined.is_waiting_for_document or examined.waits_for_service_of is not null
                then 'UNFINISHED_DOCUMENT'
            when examined.status is null then 'RESOLVER_DOWN'
        end as waiting_reason,
        case
            when examined.is_behind then examined.stopped_at_delivery_id
            when examined.is_waiting_for_document then examined.waits_for_delivery_id
            else examined.waits_for_service_of
        end as blocked_by_delivery_id,
        coalesce(
            if(examined.awaits_document, examined.key_hash, null), examined.awaited_key_hash
        ) as awaited_key_hash,
        -- a document gets history entries if its trigger uses history and a condition matches
        examined.uses_history
        and examined.condition_name is not null
        and coalesce(examined.status = 'NEW', false) as adds_to_history,
        examined.started_at,
        examined.expires_at,
        examined.history_time_to_live_ms,
        examined.run_clock as decided_at,
        '{{ invocation_id }}' as for_run_id
    from examined

)

select * from final
