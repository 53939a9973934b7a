{#- Deliveries that return to the queue: waiting ones, interrupted documents as recoveries, and
    resubmissions. -#}
{%- do no_rows_where(
    is_empty(last_published('waiting_deliveries'))
    and is_empty(ref('in_execution_this_run'))
    and is_empty(ref('resubmissions_this_run'))
) -%}
with

triggers_this_run as (

    select * from {{ ref('triggers_this_run') }}

),

waiting as (

    select
        waiting_deliveries.delivery_id,
        waiting_deliveries.trigger_name,
        waiting_deliveries.landed_delivery_id,
        waiting_deliveries.landed_received_at,
        waiting_deliveries.received_at,
        waiting_deliveries.landed_at,
        waiting_deliveries.redelivery_count,
        waiting_deliveries.origin,
        waiting_deliveries.recoveries,
        waiting_deliveries.resubmission_id,
        waiting_deliveries.examined,
        waiting_deliveries.waiting_since,
        waiting_deliveries.awaited_key_hash,
        true as had_waited
    from {{ last_published('waiting_deliveries') }} as waiting_deliveries
    inner join triggers_this_run
        on waiting_deliveries.trigger_name = triggers_this_run.trigger_name
    where triggers_this_run.rewrites_waiting

),

recoveries as (

    select
        concat(landed_delivery_id, '/recovery-', recoveries + 1) as delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        received_at,
        landed_at,
        -- the greatest int stays as it is, since adding one would overflow
        if(redelivery_count between 0 and 2147483646, redelivery_count + 1, redelivery_count)
            as redelivery_count,
        'RECOVERY' as origin,
        recoveries + 1 as recoveries,
        resubmission_id,
        true as examined,
        cast(null as timestamp) as waiting_since,
        null as awaited_key_hash,
        false as had_waited
    from {{ ref('in_execution_this_run') }}
    where ended_by = 'INTERRUPTED'

),

resubmissions as (

    select
        delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        received_at,
        -- its landing time is the time of the request
        received_at as landed_at,
        redelivery_count,
        'RESUBMISSION' as origin,
        recoveries,
        document_given_by as resubmission_id,
        true as examined,
        cast(null as timestamp) as waiting_since,
        null as awaited_key_hash,
        false as had_waited
    from {{ ref('resubmissions_this_run') }}
    -- a rejected landing comes as a landed delivery instead
    where is_accepted and not is_landing

),

final as (

    select * from waiting
    union all
    select * from recoveries
    union all
    select * from resubmissions

)

select
    *,
    '{{ invocation_id }}' as for_run_id
from final
