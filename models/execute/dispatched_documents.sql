{#- If a run is killed after its publication and before it recreates this view, its new work is
    hidden until the next run recreates the view. Work is never shown without its document. -#}
{%- set days = days_of_open_work() -%}
-- depends_on: {{ ref('open_documents') }}
with

dispatched as (

    select * from {{ ref('execution_state') }}
    where state = 'DISPATCHED'

),

with_document as (

    {{ with_document(
        'dispatched',
        ['transport', 'errors_to'],
        days,
        until='now' if days == [] else 'judged',
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
        transport,
        errors_to,

        -- times
        received_at,
        decided_at,
        is_overdue
    from with_document
    -- its landed row was found, or its resubmission brings the document
    where transport is not null or document is not null

)

select * from final
