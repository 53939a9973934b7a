-- Each state that this run gives a document follows from the one before by a row of
-- seeds/status_transitions.csv, in the order in which the run has observed them: where the document
-- stood, what became of it in the queue, what its service has told, how it has ended.
{%- set run = checked_run(ref('decisions'), ref('opened_this_run')) %}
with

queue as (

    select * from {{ ref('trigger_queue') }}
    where for_run_id = {{ run }} and queue_outcome != 'REJECTED'

),

in_execution as (

    select * from {{ ref('documents_in_execution') }}
    where for_run_id = {{ run }}

),

journal as (

    select * from {{ ref('journal_entries') }}
    where run_id = {{ run }}

),

statuses as (

    select * from {{ ref('document_status') }}
    where run_id = {{ run }}

),

rejected as (

    select distinct rejection_id from {{ ref('rejected_deliveries') }}
    where run_id = {{ run }} and table_name = 'deliveries'

),

resubmitted as (

    select
        requests.*,
        -- a request may name what this same run has rejected, or whose failure it has read
        rejected.rejection_id is not null
        or in_execution.delivery_id is not null as stands_below
    from {{ ref('resubmission_requests') }} as requests
    left join rejected on requests.resubmitted_delivery_id = rejected.rejection_id
    left join in_execution
        on
            requests.resubmitted_delivery_id = in_execution.delivery_id
            and requests.trigger_name = in_execution.trigger_name
    where requests.for_run_id = {{ run }} and requests.is_accepted

),

steps as (

    select
        trigger_name,
        delivery_id,
        if(had_waited, 0, 1) as turn,
        if(had_waited, 'WAITING', 'RECEIVED') as state
    from queue
    union all
    select
        trigger_name,
        delivery_id,
        0 as turn,
        if(state_before in ('STARTED', 'TRANSIENT_ERROR'), state_before, 'DISPATCHED') as state
    from in_execution
    union all
    select
        waiting.trigger_name,
        waiting.delivery_id,
        2 as turn,
        'WAITING' as state
    from {{ ref('waiting_deliveries') }} as waiting
    left semi join queue
        on
            waiting.delivery_id = queue.delivery_id
            and waiting.trigger_name = queue.trigger_name
            and not queue.had_waited
    union all
    select
        trigger_name,
        delivery_id,
        2 as turn,
        status as state
    from statuses
    union all
    select
        trigger_name,
        delivery_id,
        2 as turn,
        'UNROUTED' as state
    from journal
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        trigger_name,
        delivery_id,
        3 as turn,
        case
            when condition_name is null then 'UNMATCHED'
            when service is null then 'COMPLETED'
            else 'DISPATCHED'
        end as state
    from statuses
    where status in ('NEW', 'NOT_CHECKED')
    union all
    -- ends come from the journal, below
    select
        trigger_name,
        delivery_id,
        4 as turn,
        last_event as state
    from (
        select
            trigger_name,
            delivery_id,
            last_event
        from in_execution
        where has_news
        union all
        select
            trigger_name,
            delivery_id,
            last_event
        from {{ ref('opened_this_run') }}
        where run_id = {{ run }}
    )
    where last_event in ('STARTED', 'TRANSIENT_ERROR')
    union all
    select
        trigger_name,
        delivery_id,
        5 as turn,
        event as state
    from journal
    where event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')
    union all
    select
        in_execution.trigger_name,
        in_execution.delivery_id,
        6 as turn,
        'RECOVERED' as state
    from in_execution
    left semi join queue
        on
            in_execution.trigger_name = queue.trigger_name
            and concat(
                in_execution.landed_delivery_id, '/recovery-', in_execution.recoveries + 1
            ) = queue.delivery_id
            and not queue.had_waited
    union all
    -- ---- under the id of the rejected row, which is of no trigger yet
    select
        cast(null as string) as trigger_name,
        rejection_id as delivery_id,
        turn,
        state
    from rejected
        lateral view explode(map(1, 'RECEIVED', 2, 'REJECTED')) as turn, state
    union all
    select
        if(is_landing, null, trigger_name) as trigger_name,
        resubmitted_delivery_id as delivery_id,
        turn,
        state
    from resubmitted
        lateral view explode(map(0, outcome, 6, 'RESUBMITTED')) as turn, state
    where turn > 0 or not stands_below

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
