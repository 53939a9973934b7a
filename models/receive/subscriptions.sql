{{ config(materialized='ephemeral') }}
select
    trigger_name as subscriber,
    api as subscribed_api,
    explode(document_types) as subscribed_type
from {{ ref('triggers_this_run') }}
where is_in_seed
