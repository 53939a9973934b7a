-- A document in doubt is not processed until somebody has looked at it.
{{ config(meta={'kind': 'DOUBTS'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'DOUBTS'
