with

statuses as (

    select * from {{ ref('statuses_by_run') }}

),

journal as (

    select * from {{ ref('journal_by_run') }}

),

to_be_executed as (

    select * from statuses
    where {{ is_executed() }} and service is not null

),

executions as (

    select
        executions.trigger_name,
        executions.delivery_id,
        executions.event,
        executions.attempt,
        executions.message,
        {{ reported_at('executions') }} as reported_at,
        -- attempts get the number of the run that decided, so that they sort before the end
        to_be_executed.run_number,
        max(
            if(
                executions.event = 'STARTED',
                coalesce(executions.recorded_at, executions.started_at),
                null
            )
        ) over (partition by executions.trigger_name, executions.delivery_id) as last_started_at
    from {{ source('landing', 'trigger_executions') }} as executions
    inner join to_be_executed
        on
            executions.trigger_name = to_be_executed.trigger_name
            and executions.delivery_id = to_be_executed.delivery_id

),

ended as (

    select
        trigger_name,
        delivery_id,
        event as state,
        message as cause,
        happened_at,
        run_number
    from journal
    where event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')

),

-- an end may carry a time that is later than the clock of the run that read it
heard_until as (

    select
        ended.trigger_name,
        ended.delivery_id,
        max(ended.state) as state,
        greatest(max(ended.happened_at), max(executions.reported_at)) as at
    from ended
    left join executions
        on
            ended.trigger_name = executions.trigger_name
            and ended.delivery_id = executions.delivery_id
            and if(ended.state = 'RETRIES_EXHAUSTED', 'TRANSIENT_ERROR', ended.state)
            = executions.event
    group by ended.trigger_name, ended.delivery_id

),

attempted as (

    select
        executions.trigger_name,
        executions.delivery_id,
        executions.event as state,
        coalesce(
            executions.message,
            if(executions.event = 'STARTED', 'an attempt is at work', 'an attempt has failed')
        ) as cause,
        executions.reported_at as happened_at,
        executions.run_number,
        executions.attempt
    from executions
    left join heard_until
        on
            executions.trigger_name = heard_until.trigger_name
            and executions.delivery_id = heard_until.delivery_id
    where
        executions.event in ('STARTED', 'TRANSIENT_ERROR')
        -- executions after the end change nothing, nor does a failure after the last start of an
        -- interrupted or lost document
        and not coalesce(executions.reported_at > heard_until.at, false)
        and not coalesce(
            heard_until.state in ('INTERRUPTED', 'LOST')
            and executions.event = 'TRANSIENT_ERROR'
            and executions.reported_at > executions.last_started_at,
            false
        )

),

came_again as (

    select
        trigger_name,
        delivery_id,
        'RECOVERED' as state,
        cause,
        happened_at,
        run_number
    from ended
    where state = 'INTERRUPTED'
    union all
    select
        trigger_name,
        delivery_id,
        'RESUBMITTED' as state,
        message as cause,
        happened_at,
        run_number
    from journal
    where event = 'RESUBMITTED'

),

-- a rejected row without an id lands again under its rejection_id
unrouted as (

    select
        journal.trigger_name,
        journal.delivery_id,
        'UNROUTED' as state,
        journal.message as cause,
        journal.happened_at,
        journal.run_number
    from journal
    left semi join {{ ref('rejected_by_run') }} as rejected
        on
            journal.delivery_id = rejected.rejection_id
            and journal.trigger_name is null
    where journal.event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')

),

final as (

    select
        5 as turn,
        *
    from attempted
    union all
    select
        6 as turn,
        *,
        cast(null as int) as attempt
    from ended
    union all
    select
        7 as turn,
        *,
        cast(null as int) as attempt
    from came_again
    union all
    select
        8 as turn,
        *,
        cast(null as int) as attempt
    from unrouted

)

select * from final
