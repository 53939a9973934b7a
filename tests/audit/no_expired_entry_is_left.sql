-- every run removes expired entries up to its bound, as its last write
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
