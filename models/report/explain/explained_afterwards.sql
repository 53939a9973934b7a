with

all_deliveries as (

    select * from {{ ref('explained_deliveries') }}

),

reported as (

    select
        delivery_id,
        trigger_name,
        concat(
            'its service reported: ',
            array_join(
                transform(
                    sort_array(
                        collect_list(
                            named_struct(
                                'reported_at', {{ reported_at('executions') }},
                                'execution_id', execution_id,
                                'event', event,
                                'attempt', attempt,
                                'message', message
                            )
                        )
                    ),
                    e -> concat_ws(
                        ' ',
                        e.event,
                        concat('(attempt ', e.attempt, ')'),
                        {{ time_in_words('e.reported_at') }},
                        concat('"', e.message, '"')
                    )
                ),
                ', '
            )
        ) as reported
    from {{ source('landing', 'trigger_executions') }} as executions
    group by delivery_id, trigger_name

),

noted as (

    select
        delivery_id,
        trigger_name,
        array_join(
            transform(
                sort_array(
                    collect_list(
                        named_struct('happened_at', happened_at, 'event', event, 'message', message)
                    )
                ),
                e -> concat(e.event, ' ', {{ time_in_words('e.happened_at') }}, ': ', e.message)
            ),
            ', '
        ) as noted,
        bool_or(event = 'RESUBMITTED') as is_resubmitted
    from {{ ref('journal_entries') }}
    where event in ('LOST', 'RESUBMITTED', 'REFUSED')
    group by delivery_id, trigger_name

),

-- a recovery or a resubmission is a delivery of its own
came_again as (

    select
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        trigger_name,
        collect_list(
            named_struct('run_number', run_number, 'delivery_id', delivery_id, 'status', status)
        ) as deliveries
    from {{ ref('statuses_by_run') }}
    where delivery_id like '%/recovery-%' or delivery_id like '%/resubmission-%'
    group by {{ landed_delivery_id('delivery_id') }}, trigger_name

),

remembered as (

    select
        delivery_id,
        trigger_name,
        max(expires_at) as remembered_until
    from {{ ref('history_ledger') }}
    group by delivery_id, trigger_name

),

final as (

    select
        all_deliveries.*,
        execution_state.state_in_words,
        reported.reported,
        noted.noted,
        coalesce(noted.is_resubmitted, false) as is_resubmitted,
        remembered.remembered_until,
        concat(
            'came again as ',
            nullif(
                array_join(
                    transform(
                        sort_array(
                            filter(
                                came_again.deliveries,
                                d -> d.run_number > runs.run_number
                            )
                        ),
                        d -> concat(d.delivery_id, ': ', d.status)
                    ),
                    ', '
                ),
                ''
            )
        ) as returned
    from all_deliveries
    left join {{ ref('published_runs') }} as runs on all_deliveries.run_id = runs.run_id
    left join {{ ref('execution_state') }} as execution_state
        on
            all_deliveries.delivery_id = execution_state.delivery_id
            and all_deliveries.trigger_name = execution_state.trigger_name
    left join reported
        on
            all_deliveries.delivery_id = reported.delivery_id
            and all_deliveries.trigger_name = reported.trigger_name
    left join noted
        on
            all_deliveries.delivery_id = noted.delivery_id
            and all_deliveries.trigger_name = noted.trigger_name
    left join came_again
        on
            all_deliveries.landed_delivery_id = came_again.landed_delivery_id
            and all_deliveries.trigger_name = came_again.trigger_name
    left join remembered
        on
            all_deliveries.delivery_id = remembered.delivery_id
            and all_deliveries.trigger_name = remembered.trigger_name

)

select * from final
