select
    document_status.*,
    {{ landed_delivery_id('document_status.delivery_id') }} as landed_delivery_id,
    runs.run_number,
    coalesce(runs_by_clock.run_number, runs.run_number) as first_run_number
from {{ ref('document_status') }} as document_status
left join {{ ref('published_runs') }} as runs on document_status.run_id = runs.run_id
left join {{ ref('runs_by_clock') }} as runs_by_clock
    on document_status.waiting_since = runs_by_clock.started_at
