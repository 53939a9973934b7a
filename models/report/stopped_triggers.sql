-- depends_on: {{ ref('published_runs') }}
with

states as (

    select * from {{ ref('trigger_states') }}
    where is_suspended or not enabled

),

waiting as (

    select
        trigger_name,
        count(*) as waiting,
        min(received_at) as oldest_received_at
    from {{ ref('waiting_deliveries') }}
    group by trigger_name

),

final as (

    select
        -- what
        states.trigger_name,
        if(
            states.enabled, array_join(states.suspensions.cause, ' and '), 'DISABLED'
        ) as cause,
        states.suspended_by,
        states.suspended_reason,
        case
            when not states.enabled
                then 'enabled: true in seeds/triggers.csv, or retire it'
            else concat_ws(
                ', and ',
                if(
                    exists(states.suspensions, s -> s.cause != 'HISTORY_ERROR'),
                    concat(
                        "mend the cause, then dbt run-operation resume_trigger --args '",
                        '{trigger_name: ',
                        states.trigger_name,
                        "}'"
                    ),
                    null
                ),
                if(
                    array_contains(states.suspensions.cause, 'HISTORY_ERROR'),
                    'the first run without history_unavailable resumes it',
                    null
                )
            )
        end as what_to_do,

        -- counts
        coalesce(waiting.waiting, 0) as waiting,

        -- times
        states.suspended_since,
        waiting.oldest_received_at
    from states
    left join waiting on states.trigger_name = waiting.trigger_name

)

select * from final
