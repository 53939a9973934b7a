with

statuses as (

    select * from {{ ref('decided_deliveries') }}

),

final as (

    select
        -- what
        date_trunc('hour', received_at) as received_hour,
        trigger_name,
        status,
        decided_by,

        -- counts
        count(*) as deliveries,
        count(distinct document_key) as document_keys
    from statuses
    group by date_trunc('hour', received_at), trigger_name, status, decided_by

)

select * from final
