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

unfinished as (

    select
        trigger_name,
        count(*) as unfinished,
        min(received_at) as oldest_received_at
    from {{ ref('open_documents') }}
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
                then concat(
                    'enabled: true in seeds/triggers.csv',
                    if(
                        waiting.waiting is null and unfinished.unfinished is null,
                        ', or retire it without its row there',
                        ''
                    )
                )
            else concat_ws(
                ', and ',
                if(
                    exists(states.suspensions, s -> s.cause != 'HISTORY_ERROR'),
                    concat(
                        'mend the cause, then ',
                        {{ operation_command(
                            'resume_trigger', {'trigger_name': 'states.trigger_name'}
                        ) | indent(24) }}
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
        coalesce(unfinished.unfinished, 0) as unfinished,

        -- times
        array_min(states.suspensions.since) as suspended_since,
        least(waiting.oldest_received_at, unfinished.oldest_received_at) as oldest_received_at
    from states
    left join waiting on states.trigger_name = waiting.trigger_name
    left join unfinished on states.trigger_name = unfinished.trigger_name

)

select * from final
