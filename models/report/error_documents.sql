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
        statuses.document_hash,
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

    {{ with_document('decided', ['transport', 'errors_to'], until='now') | indent(4) }}

),

sent as (

    select
        delivery_id,
        trigger_name,
        min(sent_at) as sent_at
    from {{ source('landing', 'sent_errors') }}
    group by delivery_id, trigger_name

),

-- its service has reported a success since
succeeded as (

    select
        delivery_id,
        trigger_name
    from {{ ref('journal_entries') }}
    where event = 'LATE_SUCCESS'
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
    left join succeeded
        on
            with_document.delivery_id = succeeded.delivery_id
            and with_document.trigger_name = succeeded.trigger_name
    left join {{ ref('trigger_settings') }} as settings
        on with_document.trigger_name = settings.trigger_name
    -- only messaging triggers send error documents, and not through UM. A document stays in the
    -- view if its transport was removed from the seed, or if its landed row is gone
    where
        coalesce(transports.api, settings.api, 'MSG') = 'MSG'
        and coalesce(with_document.transport, '') not in ('UM', 'UM_SERIAL')
        and (sent.sent_at is not null or succeeded.delivery_id is null)

)

select * from final
