{{ config(materialized='ledger', partitioned_by='days(received_at)') }}
select
    *,
    {{ run_clock() }} as decided_at,
    for_run_id as run_id
from {{ ref('decisions') }}
where is_decided
