-- A document was handed to a service that does not start.
{{ config(meta={'kind': 'OVERDUE'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'OVERDUE'
