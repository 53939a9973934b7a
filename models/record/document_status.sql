{%- do no_rows_where(not has_found('decided')) -%}
{{ config(incremental_strategy='append', partitioned_by='days(received_at)') }}
select
    * except (started_at, expires_at, history_time_to_live_ms),
    -- null if the document adds no entries to history
    if(adds_to_history, started_at, null) as started_at,
    if(adds_to_history, expires_at, null) as expires_at,
    if(adds_to_history, history_time_to_live_ms, null) as history_time_to_live_ms,
    for_run_id as run_id
from {{ ref('decisions') }}
where is_decided
