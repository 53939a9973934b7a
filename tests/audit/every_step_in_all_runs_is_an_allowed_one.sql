-- Each state follows from the one before by a row of seeds/status_transitions.csv.
select
    document_lifecycle.trigger_name,
    document_lifecycle.delivery_id,
    document_lifecycle.step,
    document_lifecycle.from_state,
    document_lifecycle.state
from {{ ref('document_lifecycle') }} as document_lifecycle
left anti join {{ ref('status_transitions') }} as status_transitions
    on
        coalesce(document_lifecycle.from_state, '') = coalesce(status_transitions.from_state, '')
        and document_lifecycle.state = status_transitions.to_state
