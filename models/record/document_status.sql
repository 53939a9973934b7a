{{ config(materialized='ledger', partitioned_by='days(received_at)') }}
select
    * except (started_at, expires_at),
    -- only a document with entries has their times
    if(adds_to_history, started_at, null) as started_at,
    if(adds_to_history, expires_at, null) as expires_at,
    {{ run_clock() }} as decided_at,
    for_run_id as run_id
from {{ ref('decisions') }}
where is_decided
