-- What waits, or is to be processed, and whose landed row was removed is processed by nobody.
{{ config(meta={'kind': 'LANDED_ROW_GONE'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'LANDED_ROW_GONE'
