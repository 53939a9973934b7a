-- What waits for a landed row that was removed is processed by nobody.
{{ config(meta={'kind': 'LANDED_ROW_GONE'}) }}
select
    trigger_name,
    delivery_id
from {{ ref('waiting_documents') }}
where reason = 'LANDED_ROW_GONE'
