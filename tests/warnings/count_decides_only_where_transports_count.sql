-- Count-only detection takes every copy for NEW that comes without a count.
{{ config(meta={'kind': 'COUNT'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'COUNT'
