-- depends_on: {{ ref('published_runs') }}
with

statuses as (

    select * from {{ ref('document_status') }}

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,

        -- decision
        status,
        {{ status_in_words('status') }} as status_in_words,
        decided_by,
        {{ decided_by_in_words('decided_by') }} as decided_by_in_words,
        rule_id,
        {{ rule_in_words('statuses') }} as rule_in_words,

        -- evidence
        redelivery,
        redelivery_count,
        recoveries,
        key_state,
        history_state,
        resolver_result,
        message,
        matched_delivery_id,
        condition_name,
        service,
        resubmission_id,
        document_hash,
        run_id,

        -- times
        received_at,
        landed_received_at,
        decided_at
    from statuses

)

select * from final
