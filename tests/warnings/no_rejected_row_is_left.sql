-- What was rejected is processed by nobody until it lands again.
{{ config(meta={'kind': 'REJECTED'}) }}
select
    documents,
    what,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'REJECTED'
