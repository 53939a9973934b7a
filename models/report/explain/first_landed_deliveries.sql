-- the first landed row of a delivery_id counts
with

final as (

    select
        deliveries.delivery_id,
        deliveries.received_at,
        min_by(
            named_struct(
                'landed_at', deliveries.landed_at,
                'transport', deliveries.transport,
                'document_type', deliveries.document_type,
                'destination', deliveries.destination,
                'guaranteed', deliveries.guaranteed,
                'uuid', deliveries.uuid,
                'track_id', deliveries.track_id,
                'event_id', deliveries.event_id,
                'transport_api', transports.api,
                'counts_deliveries', transports.counts_deliveries,
                'first_delivery_count', transports.first_delivery_count
            ),
            struct({{ order_of_landing('deliveries') }})
        ) as first_landed
    from {{ accepted_deliveries('now', ref('rejected_deliveries')) }} as deliveries
    left join {{ typed_seed('transports') }} as transports
        on deliveries.transport = transports.transport
    group by deliveries.delivery_id, deliveries.received_at

)

select * from final
