-- At most one entry of each status; both start at one time, and the completed one expires no
-- sooner. The completed one of a service that has outlasted its time to live stays alone for a
-- while, since the other expires before it.
-- depends_on: {{ ref('published_runs') }}
select
    delivery_id,
    trigger_name,
    count_if(has_processing) as processing_entries,
    count_if(has_completed) as completed_entries
from {{ ref('history_ledger') }}
group by delivery_id, trigger_name
having
    count_if(has_processing) > 1
    or (
        count_if(has_processing) = 0
        and max(started_at) >= (
            select max(runs.history_removed_before)
            from {{ ref('published_runs') }} as runs
        )
    )
    or count_if(has_completed) > 1
    or count(distinct started_at, key_hash, key_check) != 1
    or max(if(has_completed, expires_at, null)) < max(if(has_processing, expires_at, null))
