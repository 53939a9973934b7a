-- A copy that comes after the time to live is processed again.
{{ config(meta={'kind': 'TIME_TO_LIVE'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'TIME_TO_LIVE'
