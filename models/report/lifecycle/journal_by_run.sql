select
    journal_entries.*,
    runs.run_number
from {{ ref('journal_entries') }} as journal_entries
left join {{ ref('published_runs') }} as runs on journal_entries.run_id = runs.run_id
