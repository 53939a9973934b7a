-- A second document under an id that is in use is discarded as a duplicate.
{{ config(meta={'kind': 'SAME_ID'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'SAME_ID'
