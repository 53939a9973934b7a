{%- set days = days_of_open_work() -%}
-- depends_on: {{ ref('open_documents') }}
with

ready as (

    select
        *,
        processing_mode = 'serial' as is_serial
    from {{ ref('execution_state') }}
    where
        state = 'DISPATCHED'
        or (state = 'BEHIND' and coalesce(last_event, '') != 'TRANSIENT_ERROR')

),

with_document as (

    {{ with_document(
        'ready',
        ['transport', 'errors_to'],
        days,
        until='now' if days == [] else 'judged',
    ) | indent(4) }}

),

ranked as (

    select
        *,
        row_number() over (partition by service, trigger_name order by queue_number) as queue_rank
    from with_document
    -- its landed row was found, or its resubmission brings the document
    where transport is not null or document is not null

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
        transport,
        errors_to,

        -- times
        received_at,
        decided_at,
        is_overdue,
        last_event_at,

        -- order
        is_serial,
        row_number() over (partition by service order by trigger_name, queue_number)
            as batch_position
    from ranked
    -- a document of a serial trigger counts only if every earlier one is in the list too
    where not is_serial or queue_number = queue_rank

)

select * from final
