with

statuses as (

    select * from {{ ref('document_statuses') }}
    where status = 'DUPLICATE'

),

final as (

    select
        -- ids
        trigger_name,
        delivery_id,
        document_type,
        document_key,

        -- why
        matched_delivery_id,
        decided_by,
        rule_id,
        rule_in_words as cause,
        redelivery_count,

        -- times
        received_at,
        decided_at
    from statuses

)

select * from final
