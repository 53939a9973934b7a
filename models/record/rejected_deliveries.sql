{%- set run = current_run() -%}
{%- do no_rows_where(
    not has_found('rejected') and not (run and run.has_landed('rejected_landings'))
) -%}
{{ config(incremental_strategy='append') }}
with

rejected_by_landing as (

    select
        rejection_id,
        table_name,
        delivery_id,
        reason,
        message,
        source_file,
        source_line,
        raw_text,
        landed_at
    from {{ ref('stg_rejected_landings') }}

),

rejected_by_receipt as (

    select
        sha2(concat_ws(':', landed_file, landed_position), 256) as rejection_id,
        'deliveries' as table_name,
        delivery_id,
        rejected_because as reason,
        cast(null as string) as message,
        landed_file as source_file,
        landed_position + 1 as source_line,
        raw_text,
        landed_at
    from {{ ref('trigger_queue') }}
    where queue_outcome = 'REJECTED'

),

final as (

    select * from rejected_by_landing
    union all
    select * from rejected_by_receipt

)

select
    *,
    {{ run_clock() }} as rejected_at,
    '{{ invocation_id }}' as run_id
from final
