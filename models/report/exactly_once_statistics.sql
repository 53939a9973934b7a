with

statuses as (

    select * from {{ ref('decided_deliveries') }}

),

final as (

    select
        -- what
        trigger_name,
        status,
        status_in_words,
        decided_by,
        decided_by_in_words,
        status in {{ rules_where('statistics', 'true', called='status') }} as in_product_statistics,

        -- counts
        count(*) as deliveries,
        count(distinct document_key) as document_keys,

        -- times
        min(received_at) as first_received_at,
        max(received_at) as last_received_at,
        max(decided_at) as last_decided_at,

        -- the query for the counted rows
        concat(
            'select * from {{ ref("decided_deliveries") }} where trigger_name = ',
            {{ as_literal('trigger_name') }},
            ' and status = \'', status,
            '\' and decided_by = \'', decided_by, '\''
        ) as rows_behind
    from statuses
    group by trigger_name, status, status_in_words, decided_by, decided_by_in_words

)

select * from final
