with

settings as (

    select * from {{ ref('trigger_settings') }}
    where is_in_seed

),

-- a recovery and a resubmission are not redelivered by the transport
received as (

    select
        trigger_name,
        received_at,
        min(received_at) over (partition by trigger_name, document_key) as first_received_at,
        row_number() over (
            partition by trigger_name, document_key order by received_at, delivery_id
        ) as arrival
    from {{ ref('decided_deliveries') }}
    where
        key_state = 'USABLE'
        and rule_id not in {{ rules_where('eligible', 'false') }}
        and received_at = landed_received_at
        and recoveries = 0

),

-- the shortest time to live with which the entry would still have been live for the copy
copies as (

    select
        received.trigger_name,
        settings.history_time_to_live_ms,
        cast(
            floor(
                timestampdiff(microsecond, received.first_received_at, received.received_at) / 1000
            ) + 1 as bigint
        ) as window_ms
    from received
    inner join settings on received.trigger_name = settings.trigger_name
    where received.arrival > 1

),

counted as (

    select
        trigger_name,
        count(*) as copies,
        count_if(window_ms <= history_time_to_live_ms) as copies_in_time,
        cast(percentile_disc(0.99) within group(order by window_ms) as bigint) as window_99_ms,
        cast(percentile_disc(0.999) within group(order by window_ms) as bigint) as window_99_9_ms,
        max(window_ms) as window_100_ms
    from copies
    group by trigger_name

),

final as (

    select
        -- what
        settings.trigger_name,
        settings.detect_duplicates and settings.use_history as uses_history,
        settings.history_time_to_live_ms,

        -- counts
        coalesce(counted.copies, 0) as copies,
        coalesce(counted.copies_in_time, 0) as copies_in_time,

        -- windows
        counted.window_99_ms,
        counted.window_99_9_ms,
        counted.window_100_ms,
        case
            when counted.copies is null then 'no copy of a document has come so far'
            when not (settings.detect_duplicates and settings.use_history)
                then concat(
                    'the trigger does not use history; with history_time_to_live_ms: ',
                    counted.window_100_ms, ' it would know every copy that has come so far'
                )
            when counted.copies_in_time < counted.copies
                then concat(
                    counted.copies - counted.copies_in_time, ' of ', counted.copies,
                    ' copies came after ',
                    {{ duration_in_words('settings.history_time_to_live_ms') }},
                    '; history_time_to_live_ms: ', counted.window_100_ms, ' (',
                    {{ duration_in_words('counted.window_100_ms') }}, ') would have known all'
                )
            else concat(
                'all ', counted.copies, ' copies came within ',
                {{ duration_in_words('settings.history_time_to_live_ms') }}, ', the last after ',
                {{ duration_in_words('counted.window_100_ms') }}
            )
        end as history_time_to_live_advice
    from settings
    left join counted on settings.trigger_name = counted.trigger_name

)

select * from final
