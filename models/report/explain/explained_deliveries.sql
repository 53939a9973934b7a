with

final as (

    select
        delivery_id,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,
        key_state,
        redelivery,
        redelivery_count,
        recoveries,
        status,
        status_in_words,
        decided_by_in_words,
        rule_id,
        history_state,
        matched_delivery_id,
        resolver_result,
        message,
        condition_name,
        service,
        run_id,
        received_at,
        landed_received_at,
        decided_at,
        cast(null as timestamp) as waiting_since,
        cast(null as string) as reason_in_words
    from {{ ref('decided_deliveries') }}
    union all
    select
        delivery_id,
        landed_delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,
        key_state,
        redelivery,
        redelivery_count,
        recoveries,
        cast(null as string) as status,
        cast(null as string) as status_in_words,
        cast(null as string) as decided_by_in_words,
        rule_id,
        if(rule_id is null, null, history_state) as history_state,
        cast(null as string) as matched_delivery_id,
        resolver_result,
        if(rule_id is null, null, suspension.reason) as message,
        cast(null as string) as condition_name,
        cast(null as string) as service,
        cast(null as string) as run_id,
        received_at,
        landed_received_at,
        cast(null as timestamp) as decided_at,
        waiting_since,
        reason_in_words
    from {{ ref('explained_waiting_deliveries') }}

)

select * from final
