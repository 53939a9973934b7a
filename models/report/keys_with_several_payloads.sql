with

statuses as (

    select * from {{ ref('decided_deliveries') }}
    where
        key_state = 'USABLE'
        and document_hash is not null
        -- a resubmission may carry an edited document
        and resubmission_id is null

),

final as (

    select
        -- ids
        trigger_name,
        document_key,

        -- counts
        count(distinct document_hash) as payloads,
        count(*) as deliveries,
        count_if(status = 'DUPLICATE') as discarded,

        -- times
        min(received_at) as first_received_at,
        max(received_at) as last_received_at
    from statuses
    group by trigger_name, document_key
    having count(distinct document_hash) > 1

)

select * from final
