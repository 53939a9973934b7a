with

statuses as (

    select * from {{ ref('decided_deliveries') }}
    where document_key is not null and document_hash is not null

),

final as (

    select
        -- ids
        trigger_name,
        document_hash,

        -- counts
        count(distinct document_key) as document_keys,
        count(*) as deliveries,
        count_if({{ is_executed() }}) as processed,

        -- times
        min(received_at) as first_received_at,
        max(received_at) as last_received_at
    from statuses
    group by trigger_name, document_hash
    having count(distinct document_key) > 1

)

select * from final
