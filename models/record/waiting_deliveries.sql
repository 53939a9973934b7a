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
{% set columns = [
    'delivery_id', 'trigger_name', 'landed_delivery_id', 'landed_received_at', 'received_at',
    'landed_at', 'redelivery_count', 'origin', 'recoveries', 'resubmission_id', 'waiting_since',
    'waiting_reason', 'awaited_key_hash',
] | join(', ') -%}
with

undecided as (

    select
        {{ columns }},
        true as examined,
        blocked_by_delivery_id
    from {{ ref('decisions') }}
    where not is_decided

),

not_taken as (

    select
        {{ columns }},
        examined,
        cast(null as string) as blocked_by_delivery_id
    from {{ ref('trigger_queue') }}
    where queue_outcome = 'WAITING'

),

final as (

    select * from undecided
    union all
    select * from not_taken

)

select
    * except (waiting_since, waiting_reason),
    waiting_reason as reason,
    coalesce(waiting_since, {{ run_clock() }}) as waiting_since
from final
