with

statuses as (

    select * from {{ ref('decided_deliveries') }}
    where key_state = 'USABLE'

),

settings as (

    select * from {{ ref('trigger_settings') }}

),

-- entries still in history have their own times; for the rest today's settings are used
entries as (

    select
        delivery_id,
        trigger_name,
        min(started_at) as started_at,
        max(expires_at) as expires_at
    from {{ ref('history_ledger') }}
    group by delivery_id, trigger_name

),

remembered as (

    select
        statuses.*,
        coalesce(entries.started_at, statuses.received_at) as started_at,
        coalesce(
            entries.expires_at,
            timestampadd(millisecond, settings.history_time_to_live_ms, statuses.received_at)
        ) as expires_at
    from statuses
    inner join settings on statuses.trigger_name = settings.trigger_name
    left join entries
        on
            statuses.delivery_id = entries.delivery_id
            and statuses.trigger_name = entries.trigger_name
    where
        statuses.status = 'NEW'
        -- a document that no condition takes is not processed and has no entry
        and statuses.condition_name is not null
        and statuses.rule_id not in {{ rules_where('history_effect', 'NONE') }}

),

shortly_before_expiry as (

    select
        'BEFORE_EXPIRY' as kind,
        statuses.trigger_name,
        statuses.delivery_id,
        statuses.document_type,
        statuses.document_key,
        remembered.delivery_id as earlier_delivery_id,
        statuses.received_at,
        remembered.received_at as earlier_received_at,
        remembered.started_at,
        remembered.expires_at
    from statuses
    inner join remembered
        on
            statuses.matched_delivery_id = remembered.delivery_id
            and statuses.trigger_name = remembered.trigger_name
    where
        statuses.status = 'DUPLICATE'
        -- in the last tenth of its entry's life
        and timestampdiff(millisecond, statuses.received_at, remembered.expires_at)
        < 0.1 * timestampdiff(millisecond, remembered.started_at, remembered.expires_at)

),

in_order as (

    select
        *,
        lag(
            named_struct(
                'delivery_id', delivery_id,
                'received_at', received_at,
                'started_at', started_at,
                'expires_at', expires_at
            )
        ) over (
            partition by trigger_name, document_key order by received_at, delivery_id
        ) as earlier
    from remembered

),

after_expiry as (

    select
        'AFTER_EXPIRY' as kind,
        trigger_name,
        delivery_id,
        document_type,
        document_key,
        earlier.delivery_id as earlier_delivery_id,
        received_at,
        earlier.received_at as earlier_received_at,
        earlier.started_at,
        earlier.expires_at
    from in_order
    where
        earlier.expires_at <= received_at
        and rule_id in {{ rules_where('history_effect', 'INSERT') }}

),

late as (

    select * from shortly_before_expiry
    union all
    select * from after_expiry

),

final as (

    select
        -- ids
        kind,
        trigger_name,
        delivery_id,
        document_type,
        document_key,
        earlier_delivery_id,

        -- how late
        timestampdiff(millisecond, received_at, expires_at) as milliseconds_to_expiry,

        -- times
        received_at,
        earlier_received_at,
        expires_at
    from late

)

select * from final
