with

facts as (

    select
        deliveries.*,
        landed.first_landed.landed_at,
        landed.first_landed.transport,
        landed.first_landed.destination,
        landed.first_landed.guaranteed,
        landed.first_landed.transport_api,
        landed.first_landed.counts_deliveries,
        landed.first_landed.first_delivery_count,
        settings.key,
        settings.detect_duplicates,
        settings.use_history,
        settings.history_time_to_live_ms,
        settings.resolver
    from {{ ref('explained_afterwards') }} as deliveries
    left join {{ ref('first_landed_deliveries') }} as landed
        on
            deliveries.landed_delivery_id = landed.delivery_id
            and deliveries.landed_received_at = landed.received_at
    left join {{ ref('trigger_settings') }} as settings
        on deliveries.trigger_name = settings.trigger_name

),

final as (

    select
        *,
        concat_ws(
            ', ',
            case
                when delivery_id like '%/recovery-%'
                    then concat(
                        'recovery ', recoveries, ' of delivery ', landed_delivery_id,
                        ', since its service was interrupted'
                    )
                when delivery_id like '%/resubmission-%'
                    then concat(
                        'delivery ', landed_delivery_id,
                        ' again, since an operator resubmitted it'
                    )
            end,
            concat(
                coalesce(document_type, 'a document without a type'),
                coalesce(concat(' by ', transport), '')
            ),
            -- null where its landed row is gone
            case when guaranteed then 'guaranteed' when not guaranteed then 'not guaranteed' end,
            concat('received ', {{ time_in_words('received_at') }}),
            concat('landed ', {{ time_in_words('landed_at') }})
        ) as what_came,
        concat_ws(
            '; ',
            case
                when destination is not null then 'it is the destination of the delivery'
                when transport is not null
                    then concat('it subscribes to ', coalesce(document_type, 'it'))
            end,
            case
                when status is null then 'its condition is chosen when it is decided'
                when condition_name is null then 'none of its conditions takes it'
                when service is null
                    then concat('condition ', condition_name, ', which has no service')
                else concat('condition ', condition_name, ' with service ', service)
            end
        ) as how_routed,
        case
            when key_source is null and key is not null
                then concat(
                    'what the expression ', key, ' of its trigger gives',
                    if(status is null, ' when it is decided', ': nothing')
                )
            when key_state = 'MISSING'
                then if(
                    transport_api = 'JMS',
                    'none: uuid and event_id are empty',
                    'none: uuid, track_id and event_id are empty'
                )
            else concat(
                left(document_key, if(key_state = 'TOO_LONG', 40, {{ longest_key() }})),
                if(key_state = 'TOO_LONG', '...', ''),
                ', from ',
                lower(key_source),
                if(
                    key_state = 'TOO_LONG',
                    concat(
                        '; ', char_length(document_key),
                        ' characters are too long to be looked up, {{ longest_key() }} would do'
                    ),
                    ''
                )
            )
        end as key_from,
        concat(
            redelivery,
            ': ',
            case
                when transport is null then 'its landed row is gone'
                when counts_deliveries is null
                    then concat(transport, ' is no longer in seeds/transports.csv')
                when not counts_deliveries
                    then concat(transport, ' does not count deliveries')
                when redelivery_count is null then concat(transport, ' gave no count')
                when redelivery_count < 0
                    then concat(transport, ' gave ', redelivery_count, ', which is no count')
                else concat(
                    transport, ' counted ', redelivery_count,
                    ', and its first delivery reads ', first_delivery_count
                )
            end
        ) as count_says
    from facts

)

select * from final
