-- The publisher of a document that has failed does not know of it until its error document is sent.
{{ config(meta={'kind': 'UNSENT_ERRORS'}) }}
select
    trigger_name,
    documents,
    what_to_do
from {{ ref('things_to_do') }}
where kind = 'UNSENT_ERRORS'
