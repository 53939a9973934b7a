with

statuses as (

    select * from {{ ref('statuses_by_run') }}

),

waiting as (

    select
        waiting_documents.*,
        runs_by_clock.run_number
    from {{ ref('waiting_documents') }} as waiting_documents
    left join {{ ref('runs_by_clock') }} as runs_by_clock
        on waiting_documents.waiting_since = runs_by_clock.started_at

),

journal as (

    select * from {{ ref('journal_by_run') }}

),

rejected as (

    select * from {{ ref('rejected_by_run') }}

),

-- steps_of_executions has those that landed under a rejection_id
unrouted as (

    select journal.*
    from journal
    left anti join rejected
        on
            journal.delivery_id = rejected.rejection_id
            and journal.trigger_name is null
    where journal.event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')

),

received as (

    select
        trigger_name,
        delivery_id,
        'RECEIVED' as state,
        case
            when delivery_id like '%/recovery-%' then concat('recovery of ', landed_delivery_id)
            when delivery_id like '%/resubmission-%'
                then concat('resubmission of ', landed_delivery_id)
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
    from unrouted
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
    from unrouted
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
    where {{ is_executed() }}

),

final as (

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

)

select * from final
