-- The two entries of a document start at one time, and the completed one expires no sooner.
{%- set run = checked_run(ref('documents_in_execution')) %}
with

entries as (

    select * from {{ ref('document_history') }}
    where run_id = {{ run }}

),

-- the processing entry is of the same run, or of an earlier one and its times stand with the
-- unfinished document
processing as (

    select
        delivery_id,
        trigger_name,
        key_hash,
        key_check,
        started_at,
        expires_at
    from entries
    where processing_status = 'processing'
    union all
    select
        delivery_id,
        trigger_name,
        key_hash,
        key_check,
        started_at,
        expires_at
    from {{ ref('documents_in_execution') }}
    where for_run_id = {{ run }}

),

final as (

    select
        entries.delivery_id,
        entries.trigger_name,
        entries.started_at,
        entries.expires_at,
        processing.started_at as processing_started_at,
        processing.expires_at as processing_expires_at
    from entries
    left join processing
        on
            entries.delivery_id = processing.delivery_id
            and entries.trigger_name = processing.trigger_name
    where
        entries.processing_status = 'completed'
        and not (
            entries.key_hash <=> processing.key_hash
            and entries.key_check <=> processing.key_check
            and entries.started_at <=> processing.started_at
            -- a service may outlast the time to live
            and entries.expires_at >= processing.expires_at
        )

)

select * from final
