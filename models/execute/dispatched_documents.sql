with

dispatched as (

    select * from {{ ref('execution_state') }}
    where state = 'DISPATCHED'

),

with_document as (

    {{ with_document(
        'dispatched',
        source('landing', 'deliveries'),
        source('landing', 'resubmissions'),
        ['errors_to'],
    ) | indent(4) }}

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        service,
        attempts + 1 as attempt,
        queue_number,

        -- document
        document_type,
        document_key,
        document,
        errors_to,

        -- times
        received_at,
        decided_at,
        is_overdue
    from with_document

)

select * from final
