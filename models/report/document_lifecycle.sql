-- depends_on: {{ ref('published_runs') }}
with

runs as (

    select
        run_id,
        run_number
    from {{ ref('published_runs') }}

),

-- what waits tells the clock of the run that has left it, not its id
runs_by_clock as (

    select
        started_at,
        min(run_number) as run_number
    from {{ ref('published_runs') }}
    group by started_at

),

statuses as (

    select
        document_status.*,
        {{ landed_delivery_id('document_status.delivery_id') }} as landed_delivery_id,
        runs.run_number,
        coalesce(runs_by_clock.run_number, runs.run_number) as first_run_number
    from {{ ref('document_status') }} as document_status
    left join runs on document_status.run_id = runs.run_id
    left join runs_by_clock on document_status.waiting_since = runs_by_clock.started_at

),

to_be_executed as (

    select * from statuses
    where status in ('NEW', 'NOT_CHECKED') and service is not null

),

waiting as (

    select
        waiting_documents.*,
        runs_by_clock.run_number
    from {{ ref('waiting_documents') }} as waiting_documents
    left join runs_by_clock on waiting_documents.waiting_since = runs_by_clock.started_at

),

journal as (

    select
        journal_entries.*,
        runs.run_number
    from {{ ref('journal_entries') }} as journal_entries
    left join runs on journal_entries.run_id = runs.run_id

),

rejected as (

    select
        rejected_deliveries.*,
        runs.run_number
    from {{ ref('rejected_deliveries') }} as rejected_deliveries
    left join runs on rejected_deliveries.run_id = runs.run_id
    where rejected_deliveries.table_name = 'deliveries'

),

-- ---- one relation for each kind of state, with the run that has observed it: clocks differ, runs
-- are numbered; the turn is the order within one run

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
        received_at as happened_at,
        first_run_number as run_number
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
        received_at as happened_at,
        run_number
    from waiting
    union all
    select
        trigger_name,
        delivery_id,
        'RECEIVED' as state,
        'taken from its transport' as cause,
        happened_at,
        run_number
    from journal
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        'RECEIVED' as state,
        concat_ws(' ', 'landed from', source_file) as cause,
        landed_at as happened_at,
        run_number
    from rejected

),

has_waited as (

    select
        trigger_name,
        delivery_id,
        'WAITING' as state,
        reason_in_words as cause,
        waiting_since as happened_at,
        run_number
    from waiting
    union all
    select
        trigger_name,
        delivery_id,
        'WAITING' as state,
        'it could not be decided at once' as cause,
        waiting_since as happened_at,
        first_run_number as run_number
    from statuses
    where waiting_since is not null

),

settled as (

    select
        trigger_name,
        delivery_id,
        status as state,
        {{ rule_in_words('statuses') }} as cause,
        decided_at as happened_at,
        run_number
    from statuses
    union all
    select
        trigger_name,
        delivery_id,
        'UNROUTED' as state,
        message as cause,
        happened_at,
        run_number
    from journal
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        'REJECTED' as state,
        concat_ws(': ', reason, message) as cause,
        rejected_at as happened_at,
        run_number
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
        decided_at as happened_at,
        run_number
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
        -- the run that has decided; the next one that knows of it is the one that hears of its end
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

-- what ends a document may have been told after the clock of the run that heard of it
heard_until as (

    select
        ended.trigger_name,
        ended.delivery_id,
        max(ended.state) as state,
        greatest(max(ended.happened_at), max(executions.told_at)) as at
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
        executions.attempt,
        executions.told_at as happened_at,
        executions.run_number
    from executions
    left join heard_until
        on
            executions.trigger_name = heard_until.trigger_name
            and executions.delivery_id = heard_until.delivery_id
    where
        executions.event in ('STARTED', 'TRANSIENT_ERROR')
        -- what was told after the end changes nothing, nor does a failure of a document given up
        and not coalesce(executions.told_at > heard_until.at, false)
        and not coalesce(
            heard_until.state in ('INTERRUPTED', 'LOST')
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
        happened_at,
        run_number
    from ended
    where state = 'INTERRUPTED'
    union all
    select
        -- a landing is of no trigger yet
        if(rejected.rejection_id is null, journal.trigger_name, null) as trigger_name,
        journal.delivery_id,
        'RESUBMITTED' as state,
        journal.message as cause,
        journal.happened_at,
        journal.run_number
    from journal
    left join rejected on journal.delivery_id = rejected.rejection_id
    where journal.event = 'RESUBMITTED'

),

states as (

    select
        1 as turn,
        *,
        cast(null as int) as attempt
    from received
    union all
    select
        2 as turn,
        *,
        cast(null as int) as attempt
    from has_waited
    union all
    select
        3 as turn,
        *,
        cast(null as int) as attempt
    from settled
    union all
    select
        4 as turn,
        *,
        cast(null as int) as attempt
    from handed_over
    union all
    select
        5 as turn,
        * except (attempt),
        attempt
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

),

numbered as (

    {% set in_order -%}
        partition by trigger_name, delivery_id
        order by run_number, turn, happened_at, if(state = 'STARTED', 0, 1), attempt
    {%- endset -%}
    select
        *,
        row_number() over ({{ in_order }}) as step,
        lag(state) over ({{ in_order }}) as from_state
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
