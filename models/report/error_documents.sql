-- depends_on: {{ ref('published_runs') }}
with

failed as (

    select
        event,
        delivery_id,
        trigger_name,
        message,
        happened_at,
        run_id
    from {{ ref('journal_entries') }}
    where event in ('ERROR', 'RETRIES_EXHAUSTED')

),

decided as (

    select
        statuses.delivery_id,
        statuses.trigger_name,
        statuses.document_type,
        statuses.document_key,
        statuses.service,
        statuses.received_at,
        statuses.landed_received_at,
        statuses.resubmission_id,
        {{ landed_delivery_id('statuses.delivery_id') }} as landed_delivery_id,
        failed.event as failed_by,
        failed.message,
        failed.happened_at as failed_at,
        failed.run_id
    from failed
    inner join {{ ref('document_status') }} as statuses
        on
            failed.delivery_id = statuses.delivery_id
            and failed.trigger_name = statuses.trigger_name

),

with_document as (

    {{ with_document('decided', ['transport', 'errors_to']) | indent(4) }}

),

sent as (

    select
        delivery_id,
        trigger_name,
        min(sent_at) as sent_at
    from {{ source('landing', 'sent_errors') }}
    group by delivery_id, trigger_name

),

final as (

    select
        -- ids
        with_document.delivery_id,
        with_document.trigger_name,
        with_document.document_type,
        with_document.document_key,

        -- what went wrong
        with_document.errors_to,
        with_document.failed_by,
        with_document.service,
        with_document.message,
        with_document.transport,
        with_document.document,

        -- times
        with_document.received_at,
        with_document.failed_at,
        sent.sent_at,
        with_document.run_id
    from with_document
    left join {{ typed_seed('transports') }} as transports
        on with_document.transport = transports.transport
    left join sent
        on
            with_document.delivery_id = sent.delivery_id
            and with_document.trigger_name = sent.trigger_name
    -- only messaging triggers send error documents, and not through UM; a transport that was
    -- removed from the seed hides no row
    where
        coalesce(transports.api, 'MSG') = 'MSG'
        and with_document.transport not in ('UM', 'UM_SERIAL')

)

select * from final
