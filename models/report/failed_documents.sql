with

failed as (

    select
        delivery_id,
        trigger_name,
        event as cause,
        message,
        happened_at as failed_at
    from {{ ref('journal_entries') }}
    where event in ('ERROR', 'RETRIES_EXHAUSTED', 'LOST')

),

-- a resubmission that fails has a row of its own; a request names it, or the landed delivery
resubmitted as (

    select
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        trigger_name,
        max(happened_at) as resubmitted_at
    from {{ ref('journal_entries') }}
    where event = 'RESUBMITTED'
    group by {{ landed_delivery_id('delivery_id') }}, trigger_name

),

statuses as (

    select * from {{ ref('document_statuses') }}

),

final as (

    select
        -- ids
        failed.trigger_name,
        failed.delivery_id,
        statuses.document_type,
        statuses.document_key,

        -- what went wrong
        statuses.service,
        failed.cause,
        failed.message,
        regexp_replace(
            failed.message,
            '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z_-]*[0-9][A-Za-z0-9_-]*',
            '#'
        ) as message_shape,

        -- times
        statuses.received_at,
        failed.failed_at
    from failed
    inner join statuses
        on
            failed.delivery_id = statuses.delivery_id
            and failed.trigger_name = statuses.trigger_name
    left anti join resubmitted
        on
            {{ landed_delivery_id('failed.delivery_id') }} = resubmitted.landed_delivery_id
            and failed.trigger_name = resubmitted.trigger_name
            and failed.failed_at <= resubmitted.resubmitted_at

)

select * from final
