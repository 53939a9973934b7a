select
    -- ids
    statuses.trigger_name,
    statuses.delivery_id,
    statuses.document_type,
    statuses.document_key,

    -- why
    statuses.matched_delivery_id,
    statuses.decided_by,
    statuses.rule_id,
    statuses.rule_in_words as cause,
    statuses.redelivery_count,

    -- the outcome of the document that it repeats
    originals.outcome as original_outcome,
    originals.result as original_result,

    -- times
    statuses.received_at,
    statuses.decided_at,
    originals.ended_at as original_ended_at
from {{ ref('decided_deliveries') }} as statuses
left join {{ ref('document_outcomes') }} as originals
    on
        statuses.matched_delivery_id = originals.delivery_id
        and statuses.trigger_name = originals.trigger_name
where statuses.status = 'DUPLICATE'
