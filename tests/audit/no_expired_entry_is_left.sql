-- each run removes what has expired up to its own bound, last of all that it writes
select
    trigger_name,
    delivery_id,
    processing_status,
    expires_at
from {{ ref('document_history') }}
where
    {{ has_expired(
        '(select max_by(history_removed_before, publication_number) from '
        ~ ref('published_runs') ~ ')'
    ) }}
