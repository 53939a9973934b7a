{{ config(materialized='ephemeral') }}
{%- set facts = queue_facts() %}
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
        subscriptions.subscriber
    from {{ ref('checked_deliveries') }} as checked
    left join subscriptions
        on
            checked.rejected_because is null
            and checked.destination is null
            and checked.document_type = subscriptions.subscribed_type
            and checked.transport_api = subscriptions.subscribed_api

),

routed as (

    {% if facts.has_destinations -%}
        select
            subscribed.* except (subscriber),
            coalesce(subscribed.subscriber, destinations.trigger_name) as trigger_name
        from subscribed
        left join triggers_this_run as destinations
            on
                subscribed.rejected_because is null
                and subscribed.destination = destinations.trigger_name
                and not destinations.is_retired
    {%- else -%}
        select
            * except (subscriber),
            subscriber as trigger_name
        from subscribed
    {%- endif %}

),

final as (

    select
        routed.*,
        case
            when routed.rejected_because is not null then 'REJECTED'
            when routed.trigger_name is null then 'UNROUTED'
            {% if facts.has_starts -%}
                when routed.received_at < starts.takes_from then 'NOT_TAKEN'
            {%- endif %}
        end as left_out,
        routed.delivery_id as landed_delivery_id,
        routed.received_at as landed_received_at,
        'LANDED' as origin,
        0 as recoveries,
        cast(null as string) as resubmission_id,
        false as examined,
        cast(null as timestamp) as waiting_since,
        false as had_waited,
        cast(null as bigint) as awaited_key_hash,
        cast(null as struct<document_key: string, key_source: string>) as decided_key,
        false as is_gone
    from routed
    {% if facts.has_starts -%}
        left join triggers_this_run as starts on routed.trigger_name = starts.trigger_name
    {%- endif %}

)

select * from final
