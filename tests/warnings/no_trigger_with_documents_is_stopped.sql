-- What waits for a trigger that takes nothing is processed by nobody.
{{ config(meta={'kind': 'STOPPED'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'STOPPED'
