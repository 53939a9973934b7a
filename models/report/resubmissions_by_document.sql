{{ config(materialized='ephemeral', access='private', contract={'enforced': false}) }}

select
    trigger_name,
    {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
    sort_array(collect_set(struct(run_number, happened_at))) as resubmitted
from {{ ref('journal_by_run') }}
where event = 'RESUBMITTED'
group by trigger_name, {{ landed_delivery_id('delivery_id') }}
