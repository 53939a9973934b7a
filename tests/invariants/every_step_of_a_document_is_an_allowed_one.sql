-- Each state that this run gives a document follows from the one before by a row of
-- seeds/status_transitions.csv, in the order in which the run has observed them: where the document
-- stood, its outcome in the queue, what its service has reported, how it has ended.
{%- set run = checked_run(ref('decisions'), ref('opened_this_run')) %}
with

queue as (

    select * from {{ ref('trigger_queue') }}
    where for_run_id = {{ run }} and queue_outcome != 'REJECTED'

),

in_execution as (

    select * from {{ ref('in_execution_this_run') }}
    where for_run_id = {{ run }}

),

journal as (

    select * from {{ written_by(run, ref('journal_entries')) | indent(4) }}

),

statuses as (

    select * from {{ written_by(run, ref('document_status')) | indent(4) }}

),

rejected as (

    select distinct rejection_id from {{ written_by(run, ref('rejected_deliveries')) | indent(4) }}
    where table_name = 'deliveries'

),

resubmitted as (

    select
        requests.*,
        -- a request may name what this same run has rejected, or whose failure it has read
        rejected.rejection_id is not null
        or in_execution.delivery_id is not null as stands_below
    from {{ ref('resubmissions_this_run') }} as requests
    left join rejected on requests.resubmitted_delivery_id = rejected.rejection_id
    left join in_execution
        on
            requests.resubmitted_delivery_id = in_execution.delivery_id
            and requests.trigger_name = in_execution.trigger_name
    where requests.for_run_id = {{ run }} and requests.is_accepted

),

-- a row without an id lands again by that of its rejection: one that no trigger takes goes on there
landed_by_rejection as (

    select delivery_id
    from resubmitted
    where is_landing and delivery_id = resubmitted_delivery_id

),

-- the steps of a document by where they are recorded, as maps of turn and state
by_source as (

    select
        queue.trigger_name,
        queue.delivery_id,
        map(
            if(queue.had_waited, 0, 1), if(queue.had_waited, 'WAITING', 'RECEIVED'),
            2, if(not queue.had_waited and waiting.delivery_id is not null, 'WAITING', null)
        ) as steps
    from queue
    left join {{ ref('waiting_deliveries') }} as waiting
        on
            queue.delivery_id = waiting.delivery_id
            and queue.trigger_name = waiting.trigger_name
    left anti join landed_by_rejection
        on
            queue.delivery_id = landed_by_rejection.delivery_id
            and queue.trigger_name is null
    union all
    -- ends come from the journal, below
    select
        in_execution.trigger_name,
        in_execution.delivery_id,
        map(
            0, if(
                in_execution.state_before in ('STARTED', 'TRANSIENT_ERROR'),
                in_execution.state_before,
                'DISPATCHED'
            ),
            4, if(
                in_execution.has_news
                and in_execution.last_event in ('STARTED', 'TRANSIENT_ERROR'),
                in_execution.last_event,
                null
            ),
            6, if(recovery.delivery_id is not null, 'RECOVERED', null)
        ) as steps
    from in_execution
    left join queue as recovery
        on
            in_execution.trigger_name = recovery.trigger_name
            and concat(
                in_execution.landed_delivery_id, '/recovery-', in_execution.recoveries + 1
            ) = recovery.delivery_id
            and not recovery.had_waited
    union all
    select
        trigger_name,
        delivery_id,
        map(4, last_event) as steps
    from {{ ref('opened_this_run') }}
    where run_id = {{ run }} and last_event in ('STARTED', 'TRANSIENT_ERROR')
    union all
    select
        trigger_name,
        delivery_id,
        map(
            2, status,
            3, case
                when status not in ('NEW', 'NOT_CHECKED') then null
                when condition_name is null then 'UNMATCHED'
                when service is null then 'COMPLETED'
                else 'DISPATCHED'
            end
        ) as steps
    from statuses
    union all
    select
        journal.trigger_name,
        journal.delivery_id,
        map(
            if(landed_by_rejection.delivery_id is null or journal.trigger_name is not null, 2, 7),
            if(journal.event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN'), 'UNROUTED', null),
            5, if(
                journal.event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST'),
                journal.event,
                null
            )
        ) as steps
    from journal
    left join landed_by_rejection on journal.delivery_id = landed_by_rejection.delivery_id
    union all
    -- ---- under the id of the rejected row, which is of no trigger yet
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        map(1, 'RECEIVED', 2, 'REJECTED') as steps
    from rejected
    union all
    select
        if(is_landing, null, trigger_name) as trigger_name,
        resubmitted_delivery_id as delivery_id,
        map(0, if(stands_below, null, outcome), 6, 'RESUBMITTED') as steps
    from resubmitted

),

steps as (

    select
        trigger_name,
        delivery_id,
        turn,
        state
    from by_source
        lateral view explode(steps) as turn, state
    where state is not null

),

in_order as (

    select
        trigger_name,
        delivery_id,
        turn,
        state,
        lag(state) over (
            partition by trigger_name, delivery_id
            order by turn, state
        ) as from_state
    from steps

)

select
    in_order.trigger_name,
    in_order.delivery_id,
    in_order.from_state,
    in_order.state
from in_order
left anti join {{ ref('status_transitions') }} as status_transitions
    on
        coalesce(in_order.from_state, '') = coalesce(status_transitions.from_state, '')
        and in_order.state = status_transitions.to_state
-- turn 0 is where a document stood before this run
where in_order.turn > 0 or in_order.from_state is not null
