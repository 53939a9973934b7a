{{ config(materialized='view', access='public', contract={'enforced': true}) }}
with

ledger as (

    select * from {{ ref('history_ledger') }}

),

final as (

    select
        base64(unhex(sha1(trigger_name))) as trigger_id,
        trigger_name,
        document_key,
        processing_status,
        started_at,
        expires_at,
        delivery_id,
        run_id,
        key_hash,
        key_check
    from ledger
        lateral view explode(
            array_compact(
                array(if(has_processing, 'processing', null), if(has_completed, 'completed', null))
            )
        ) as processing_status

)

select * from final
