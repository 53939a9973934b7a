{%- do no_rows_where(
    is_empty(last_published('waiting_deliveries'))
    and not has_found('not_taken')
    and not has_found('undecided')
) -%}
-- depends_on: {{ ref('triggers_this_run') }}
{{
    config(
        incremental_strategy='append',
        partitioned_by='trigger_name',
        pre_hook='delete from {{ this }} where {{ of_taking_triggers() }}',
    )
}}
with

undecided as (

    select
        delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        received_at,
        landed_at,
        redelivery_count,
        origin,
        recoveries,
        resubmission_id,
        true as examined,
        waiting_since,
        waiting_reason as reason,
        blocked_by_delivery_id,
        awaited_key
    from {{ ref('decisions') }}
    where not is_decided

),

not_taken as (

    select
        delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        received_at,
        landed_at,
        redelivery_count,
        origin,
        recoveries,
        resubmission_id,
        examined,
        waiting_since,
        waiting_reason as reason,
        cast(null as string) as blocked_by_delivery_id,
        awaited_key
    from {{ ref('trigger_queue') }}
    where queue_outcome = 'WAITING'

),

final as (

    select * from undecided
    union all
    select * from not_taken

)

select
    * except (waiting_since),
    coalesce(waiting_since, {{ run_clock() }}) as waiting_since
from final
