-- depends_on: {{ ref('published_runs') }}
with

waiting as (

    select * from {{ ref('waiting_deliveries') }}

),

states as (

    select * from {{ ref('trigger_states') }}

),

final as (

    select
        -- ids
        waiting.trigger_name,
        waiting.delivery_id,
        waiting.origin,

        -- why
        waiting.reason,
        case waiting.reason
            when 'DISABLED' then 'its trigger is disabled, or no longer in the seed'
            when 'SUSPENDED'
                then concat(
                    'its trigger is suspended: ',
                    array_join(
                        transform(
                            states.suspensions,
                            s -> concat_ws(': ', s.cause, s.caused_by, s.reason)
                        ),
                        '; '
                    )
                )
            when 'LANDED_ROW_GONE' then 'its landed row was removed: land it again'
            when 'HELD' then 'an operator has set it aside'
            when 'RESOLVER_DOWN'
                then 'its resolver has not answered several times in a row; the next run asks again'
            when 'QUEUE_CAPACITY' then 'older deliveries have filled the queue of this run'
            when 'UNFINISHED_DOCUMENT'
                then concat_ws(
                    ' ',
                    'a copy of it is not finished:',
                    waiting.blocked_by_delivery_id
                )
            when 'BEHIND' then concat_ws(
                ' ',
                'a copy of it before this one is not decided:',
                waiting.blocked_by_delivery_id
            )
        end as reason_in_words,
        waiting.blocked_by_delivery_id,

        -- times
        waiting.received_at,
        waiting.waiting_since
    from waiting
    left join states on waiting.trigger_name = states.trigger_name

)

select * from final
