{{ config(materialized='ephemeral') }}
-- depends_on: {{ ref('checked_deliveries') }}
with

triggers_this_run as (

    select * from {{ ref('triggers_this_run') }}

),

consumed_deliveries as (

    select
        deliveries.* except (arrival),
        transports.api as transport_api
    from (
        select
            *,
            row_number() over (
                partition by delivery_id
                order by {{ order_of_landing('consumed') }}
            ) as arrival
        from {{ accepted_deliveries('consumed') }} as consumed
    ) as deliveries
    left join {{ typed_seed('transports') }} as transports
        on deliveries.transport = transports.transport
    where deliveries.arrival = 1

),

-- deliveries whose landed row alone is not enough: it has no landed_at, which landing always sets,
-- or it was rejected for its transport and may have landed again unchanged
in_question as (

    select delivery_id
    from {{ landed_before('deliveries') }}
    where landed_at is null
    union all
    select delivery_id
    from {{ last_published('rejected_deliveries') }}
    where reason = 'UNKNOWN_TRANSPORT'

),

-- a row without landed_at counts as landed when the run that consumed it began
consumptions as (

    select
        known.delivery_id,
        min(known.landed_at) as landed_at
    from (
        select
            delivery_id,
            landed_at
        from {{ last_published('document_status') }}
        union all
        select
            delivery_id,
            landed_at
        from {{ last_published('waiting_deliveries') }}
        union all
        select
            delivery_id,
            happened_at as landed_at
        from {{ last_published('journal_entries') }}
        where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    ) as known
    left semi join in_question on known.delivery_id = in_question.delivery_id
    group by known.delivery_id

),

final as (

    select
        consumed_deliveries.* except (landed_at),
        coalesce(consumed_deliveries.landed_at, consumptions.landed_at) as landed_at,
        cast(null as string) as rejected_because,
        triggers_this_run.trigger_name,
        cast(null as string) as left_out,
        consumed_deliveries.delivery_id as landed_delivery_id,
        consumed_deliveries.received_at as landed_received_at,
        'LANDED' as origin,
        0 as recoveries,
        cast(null as string) as resubmission_id,
        false as examined,
        cast(null as timestamp) as waiting_since,
        false as had_waited,
        cast(null as bigint) as awaited_key_hash,
        cast(null as struct<document_key: string, key_source: string>) as decided_key,
        false as is_gone
    from consumed_deliveries
    left join consumptions on consumed_deliveries.delivery_id = consumptions.delivery_id
    inner join triggers_this_run
        on
            -- its landed row is accepted, or a ledger shows that a run has accepted it
            (consumed_deliveries.landing_rank < 2 or consumptions.delivery_id is not null)
            and triggers_this_run.takes_earlier_landings
            and consumed_deliveries.received_at >= triggers_this_run.takes_from
    left join {{ ref('subscriptions') }} as subscriptions
        on
            triggers_this_run.trigger_name = subscriptions.subscriber
            and consumed_deliveries.document_type = subscriptions.subscribed_type
            and consumed_deliveries.transport_api = subscriptions.subscribed_api
    -- a trigger that was retired and added again has already decided some of them
    left anti join {{ last_published('document_status') }} as decided
        on
            consumed_deliveries.delivery_id = decided.delivery_id
            and triggers_this_run.trigger_name = decided.trigger_name
    where
        consumed_deliveries.destination = triggers_this_run.trigger_name
        or (
            consumed_deliveries.destination is null and subscriptions.subscriber is not null
        )

)

select * from final
