with

failed as (

    select
        delivery_id,
        trigger_name,
        event as cause,
        message,
        happened_at as failed_at,
        run_number
    from {{ ref('journal_by_run') }}
    where event in ('ERROR', 'RETRIES_EXHAUSTED', 'LOST')

),

statuses as (

    select * from {{ ref('decided_deliveries') }}

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
    -- its service has reported a success since
    left anti join {{ ref('journal_entries') }} as successes
        on
            failed.delivery_id = successes.delivery_id
            and failed.trigger_name = successes.trigger_name
            and successes.event = 'LATE_SUCCESS'
    -- a resubmission that fails has a row of its own
    left anti join {{ ref('resubmissions_by_document') }} as resubmissions
        on
            {{ landed_delivery_id('failed.delivery_id') }} = resubmissions.landed_delivery_id
            and failed.trigger_name = resubmissions.trigger_name
            and failed.run_number <= array_max(resubmissions.resubmitted).run_number

)

select * from final
