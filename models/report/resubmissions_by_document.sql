{{ config(materialized='ephemeral', access='private', contract={'enforced': false}) }}

select
    trigger_name,
    {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
    sort_array(collect_set(happened_at)) as resubmitted
from {{ ref('journal_entries') }}
where event = 'RESUBMITTED'
group by trigger_name, {{ landed_delivery_id('delivery_id') }}
