{{ config(materialized='ephemeral') }}
with

triggers_this_run as (

    select * from {{ ref('triggers_this_run') }}

),

subscriptions as (

    select * from {{ ref('subscriptions') }}

),

subscribed as (

    select
        checked.*,
        subscriptions.subscriber as trigger_name
    from {{ ref('checked_deliveries') }} as checked
    left join subscriptions
        on
            checked.rejected_because is null
            and checked.destination is null
            and checked.document_type = subscriptions.subscribed_type
            and checked.transport_api = subscriptions.subscribed_api

),

final as (

    select
        subscribed.* except (trigger_name),
        coalesce(subscribed.trigger_name, destinations.trigger_name) as trigger_name,
        case
            when subscribed.rejected_because is not null then 'REJECTED'
            when coalesce(subscribed.trigger_name, destinations.trigger_name) is null
                then 'UNROUTED'
            when subscribed.received_at < coalesce(all_triggers.takes_from, subscribed.received_at)
                then 'NOT_TAKEN'
        end as left_out,
        subscribed.delivery_id as landed_delivery_id,
        subscribed.received_at as landed_received_at,
        'LANDED' as origin,
        0 as recoveries,
        cast(null as string) as resubmission_id,
        false as examined,
        cast(null as timestamp) as waiting_since,
        false as had_waited,
        cast(null as bigint) as awaited_key_hash,
        cast(null as struct<document_key: string, key_source: string>) as decided_key,
        false as is_gone
    from subscribed
    left join triggers_this_run as destinations
        on
            subscribed.rejected_because is null
            and subscribed.destination = destinations.trigger_name
            and not destinations.is_retired
    left join triggers_this_run as all_triggers
        on coalesce(subscribed.trigger_name, destinations.trigger_name) = all_triggers.trigger_name

)

select * from final
