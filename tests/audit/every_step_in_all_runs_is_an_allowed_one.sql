-- Each state follows from the one before by a row of seeds/status_transitions.csv; of the documents
-- decided before retention has forgotten rows, steps may be missing.
with

decided as (

    select
        document_status.delivery_id,
        document_status.trigger_name,
        published_runs.run_number
    from {{ ref('document_status') }} as document_status
    inner join {{ ref('published_runs') }} as published_runs
        on document_status.run_id = published_runs.run_id

)

select
    document_lifecycle.trigger_name,
    document_lifecycle.delivery_id,
    document_lifecycle.step,
    document_lifecycle.from_state,
    document_lifecycle.state
from {{ ref('document_lifecycle') }} as document_lifecycle
left join decided
    on
        document_lifecycle.delivery_id = decided.delivery_id
        and document_lifecycle.trigger_name = decided.trigger_name
left anti join {{ ref('status_transitions') }} as status_transitions
    on
        coalesce(document_lifecycle.from_state, '') = coalesce(status_transitions.from_state, '')
        and document_lifecycle.state = status_transitions.to_state
where
    {{ forgotten_until(only_statuses=false) }} = 0
    or decided.run_number > {{ forgotten_until(only_statuses=false) }}
