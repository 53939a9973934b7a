-- Of what a run has taken, each is decided, waits, is unrouted or is rejected, and the ledger of
-- that fate holds it once; nothing is decided that was not taken.
{%- set run = checked_run(ref('trigger_queue')) %}
with

taken as (

    select
        -- a rejected row may have no delivery_id
        if(
            queue_outcome = 'REJECTED',
            sha2(concat_ws(':', landed_file, landed_position), 256),
            delivery_id
        ) as taken_id,
        trigger_name,
        queue_outcome
    from {{ ref('trigger_queue') }}
    where for_run_id = {{ run }}

),

fates as (

    select
        delivery_id as taken_id,
        trigger_name,
        'DECIDED' as fate
    from {{ ref('document_status') }}
    where run_id = {{ run }}
    union all
    select
        waiting_deliveries.delivery_id as taken_id,
        waiting_deliveries.trigger_name,
        'WAITING' as fate
    from {{ ref('waiting_deliveries') }} as waiting_deliveries
    -- deliveries of a trigger that takes nothing were waiting before and are not part of this run
    left semi join taken
        on
            waiting_deliveries.delivery_id = taken.taken_id
            and waiting_deliveries.trigger_name = taken.trigger_name
    union all
    select
        delivery_id as taken_id,
        trigger_name,
        'UNROUTED' as fate
    from {{ ref('journal_entries') }}
    where run_id = {{ run }} and event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        rejected_deliveries.rejection_id as taken_id,
        cast(null as string) as trigger_name,
        'REJECTED' as fate
    from {{ ref('rejected_deliveries') }} as rejected_deliveries
    -- landing rejects rows as well
    left semi join taken on rejected_deliveries.rejection_id = taken.taken_id
    where rejected_deliveries.run_id = {{ run }}

),

final as (

    select
        coalesce(taken.taken_id, fates.taken_id) as taken_id,
        coalesce(taken.trigger_name, fates.trigger_name) as trigger_name,
        max(taken.queue_outcome) as queue_outcome,
        sort_array(collect_list(fates.fate)) as fates
    from taken
    full outer join fates
        on taken.taken_id = fates.taken_id and taken.trigger_name <=> fates.trigger_name
    group by
        coalesce(taken.taken_id, fates.taken_id),
        coalesce(taken.trigger_name, fates.trigger_name)

)

select *
from final
where
    queue_outcome is null
    or size(fates) != 1
    or not case queue_outcome
        when 'QUEUED' then fates[0] in ('DECIDED', 'WAITING')
        when 'NOT_TAKEN' then fates[0] = 'UNROUTED'
        else fates[0] = queue_outcome
    end
