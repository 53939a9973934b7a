-- depends_on: {{ ref('published_runs') }}
with

statuses as (

    select
        *,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id
    from {{ ref('document_status') }}

),

to_be_executed as (

    select * from statuses
    where status in ('NEW', 'NOT_CHECKED') and service is not null

),

waiting as (

    select * from {{ ref('waiting_documents') }}

),

journal as (

    select * from {{ ref('journal_entries') }}

),

rejected as (

    select * from {{ ref('rejected_deliveries') }}
    where table_name = 'deliveries'

),

-- ---- one relation for each place in a life; the place orders what clocks cannot

received as (

    select
        trigger_name,
        delivery_id,
        'RECEIVED' as state,
        case
            when resubmission_id is not null then concat('resubmission of ', landed_delivery_id)
            when recoveries > 0 then concat('recovery of ', landed_delivery_id)
            else 'taken from its transport'
        end as cause,
        received_at as happened_at
    from statuses
    union all
    select
        trigger_name,
        delivery_id,
        'RECEIVED' as state,
        case origin
            when 'RECOVERY' then 'comes back after its service was interrupted'
            when 'RESUBMISSION' then 'comes back on request'
            else 'taken from its transport'
        end as cause,
        received_at as happened_at
    from waiting
    union all
    select
        trigger_name,
        delivery_id,
        'RECEIVED' as state,
        'taken from its transport' as cause,
        happened_at
    from journal
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        'RECEIVED' as state,
        concat_ws(' ', 'landed from', source_file) as cause,
        landed_at as happened_at
    from rejected

),

has_waited as (

    select
        trigger_name,
        delivery_id,
        'WAITING' as state,
        reason_in_words as cause,
        waiting_since as happened_at
    from waiting
    union all
    select
        trigger_name,
        delivery_id,
        'WAITING' as state,
        'it could not be decided at once' as cause,
        waiting_since as happened_at
    from statuses
    where waiting_since is not null

),

settled as (

    select
        trigger_name,
        delivery_id,
        status as state,
        {{ rule_in_words('statuses') }} as cause,
        decided_at as happened_at
    from statuses
    union all
    select
        trigger_name,
        delivery_id,
        'UNROUTED' as state,
        message as cause,
        happened_at
    from journal
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        'REJECTED' as state,
        concat_ws(': ', reason, message) as cause,
        rejected_at as happened_at
    from rejected

),

handed_over as (

    select
        trigger_name,
        delivery_id,
        case
            when condition_name is null then 'UNMATCHED'
            when service is null then 'COMPLETED'
            else 'DISPATCHED'
        end as state,
        case
            when condition_name is null then 'it matches no condition'
            when service is null then concat('condition ', condition_name, ' has no service')
            else concat('condition ', condition_name, ' names service ', service)
        end as cause,
        decided_at as happened_at
    from statuses
    where status in ('NEW', 'NOT_CHECKED')

),

executions as (

    select
        executions.trigger_name,
        executions.delivery_id,
        executions.event,
        executions.attempt,
        executions.message,
        coalesce(executions.recorded_at, executions.ended_at, executions.started_at) as told_at,
        max(
            if(
                executions.event = 'STARTED',
                coalesce(executions.recorded_at, executions.started_at),
                null
            )
        ) over (partition by executions.trigger_name, executions.delivery_id) as last_started_at
    from {{ source('landing', 'trigger_executions') }} as executions
    left semi join to_be_executed
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
        happened_at
    from journal
    where event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')

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
        executions.attempt,
        executions.told_at as happened_at
    from executions
    left join ended
        on
            executions.trigger_name = ended.trigger_name
            and executions.delivery_id = ended.delivery_id
    where
        executions.event in ('STARTED', 'TRANSIENT_ERROR')
        -- a failure that was told after the document was given up
        and not coalesce(
            ended.state in ('INTERRUPTED', 'LOST')
            and executions.event = 'TRANSIENT_ERROR'
            and executions.told_at > executions.last_started_at,
            false
        )

),

came_again as (

    select
        trigger_name,
        delivery_id,
        'RECOVERED' as state,
        cause,
        happened_at
    from ended
    where state = 'INTERRUPTED'
    union all
    select
        -- a landing is of no trigger yet
        if(rejected.rejection_id is null, journal.trigger_name, null) as trigger_name,
        journal.delivery_id,
        'RESUBMITTED' as state,
        journal.message as cause,
        journal.happened_at
    from journal
    left join rejected on journal.delivery_id = rejected.rejection_id
    where journal.event = 'RESUBMITTED'

),

states as (

    select
        1 as place,
        *,
        cast(null as int) as attempt
    from received
    union all
    select
        2 as place,
        *,
        cast(null as int) as attempt
    from has_waited
    union all
    select
        3 as place,
        *,
        cast(null as int) as attempt
    from settled
    union all
    select
        4 as place,
        *,
        cast(null as int) as attempt
    from handed_over
    union all
    select
        5 as place,
        trigger_name,
        delivery_id,
        state,
        cause,
        happened_at,
        attempt
    from attempted
    union all
    select
        6 as place,
        *,
        cast(null as int) as attempt
    from ended
    union all
    select
        7 as place,
        *,
        cast(null as int) as attempt
    from came_again

),

numbered as (

    select
        *,
        row_number() over (
            partition by trigger_name, delivery_id
            order by place, happened_at, if(state = 'STARTED', 0, 1), attempt
        ) as step,
        lag(state) over (
            partition by trigger_name, delivery_id
            order by place, happened_at, if(state = 'STARTED', 0, 1), attempt
        ) as from_state
    from states

),

final as (

    select
        -- ids
        trigger_name,
        delivery_id,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,

        -- what
        step,
        from_state,
        state,
        cause,
        attempt,

        -- times
        happened_at
    from numbered

)

select * from final
