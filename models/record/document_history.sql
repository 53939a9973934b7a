{{
    config(
        materialized='ledger',
        partitioned_by=var('history_partition') ~ '(expires_at)',
        sorted_by='key_hash',
    )
}}
with

started as (

    select
        trigger_id,
        trigger_name,
        document_key,
        processing_status,
        started_at,
        expires_at,
        delivery_id,
        key_hash,
        key_check
    from {{ ref('decisions') }}
    -- where there is nothing to run, being decided completes the document
        lateral view explode(
            if(service is null, array('processing', 'completed'), array('processing'))
        ) as processing_status
    where adds_to_history

),

ended as (

    select
        base64(unhex(sha1(trigger_name))) as trigger_id,
        trigger_name,
        document_key,
        'completed' as processing_status,
        started_at,
        expires_at,
        delivery_id,
        key_hash,
        key_check
    from {{ ref('documents_in_execution') }}
    where is_completed and key_hash is not null

),

-- its end was told before it was decided
ended_before as (

    select
        trigger_id,
        trigger_name,
        document_key,
        'completed' as processing_status,
        started_at,
        expires_at,
        delivery_id,
        key_hash,
        key_check
    from {{ ref('opened_documents') }}
    where ended_by is not null and adds_to_history

),

final as (

    select * from started
    union all
    select * from ended
    union all
    select * from ended_before

)

select
    *,
    '{{ invocation_id }}' as run_id
from final
