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

outcomes as (

    select
        taken_id,
        trigger_name,
        queue_outcome,
        cast(null as string) as fate
    from taken
    union all
    select
        delivery_id as taken_id,
        trigger_name,
        cast(null as string) as queue_outcome,
        'DECIDED' as fate
    from {{ written_by(run, ref('document_status')) | indent(4) }}
    union all
    select
        waiting_deliveries.delivery_id as taken_id,
        waiting_deliveries.trigger_name,
        cast(null as string) as queue_outcome,
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
        cast(null as string) as queue_outcome,
        'UNROUTED' as fate
    from {{ written_by(run, ref('journal_entries')) | indent(4) }}
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select
        rejection_id as taken_id,
        cast(null as string) as trigger_name,
        cast(null as string) as queue_outcome,
        'REJECTED' as fate
    from {{ written_by(run, ref('rejected_deliveries')) | indent(4) }}

),

final as (

    select
        taken_id,
        trigger_name,
        max(queue_outcome) as queue_outcome,
        count(queue_outcome) as times_taken,
        sort_array(collect_list(fate)) as fates
    from outcomes
    group by taken_id, trigger_name

)

select *
from final
where
    -- landing rejects rows as well, which no run has taken
    if(
        times_taken = 0,
        exists(fates, fate -> fate != 'REJECTED'),
        times_taken > 1
        or size(fates) != 1
        or not case queue_outcome
            when 'QUEUED' then fates[0] in ('DECIDED', 'WAITING')
            when 'NOT_TAKEN' then fates[0] = 'UNROUTED'
            else fates[0] = queue_outcome
        end
    )
