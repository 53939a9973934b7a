-- every run removes expired entries up to its bound, as its last write
select
    trigger_name,
    delivery_id,
    expires_at
from {{ ref('history_ledger') }}
where
    {{ has_expired(
        '(select max_by(history_removed_before, publication_number) from '
        ~ ref('published_runs') ~ ')'
    ) }}
