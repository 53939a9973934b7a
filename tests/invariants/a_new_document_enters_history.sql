-- A NEW document that its trigger looks up and a condition takes has both entries where there is
-- nothing to run, and none from its decision where a service has to begin first.
{%- set run = checked_run(ref('decisions'), ref('opened_this_run')) %}
with

new_documents as (

    select * from {{ ref('decisions') }}
    where
        for_run_id = {{ run }}
        and status = 'NEW'
        and key_hash is not null
        and condition_name is not null

),

final as (

    select
        new_documents.delivery_id,
        new_documents.trigger_name,
        new_documents.service,
        -- a document whose executions landed before its decision has its entries from them
        any_value(opened.begun) as has_begun,
        any_value(opened.ended_by) as ended_by,
        any_value(coalesce(new_documents.expires_at, opened.expires_at)) as expires_at,
        count_if(history_ledger.has_processing) as processing_entries,
        count_if(history_ledger.has_completed) as completed_entries,
        count_if(
            history_ledger.has_processing
            and not (
                new_documents.key_hash = history_ledger.key_hash
                and new_documents.key_check = history_ledger.key_check
                and history_ledger.started_at
                <=> coalesce(new_documents.started_at, opened.started_at)
                and history_ledger.expires_at
                <=> coalesce(new_documents.expires_at, opened.expires_at)
            )
        ) as wrong_entries
    from new_documents
    left join {{ ref('opened_this_run') }} as opened
        on
            new_documents.delivery_id = opened.delivery_id
            and new_documents.trigger_name = opened.trigger_name
            and opened.for_run_id = {{ run }}
    left join {{ written_by(run, ref('history_ledger')) | indent(4) }} as history_ledger
        on
            new_documents.delivery_id = history_ledger.delivery_id
            and new_documents.trigger_name = history_ledger.trigger_name
    group by new_documents.delivery_id, new_documents.trigger_name, new_documents.service

)

select *
from final
where
    (
        processing_entries != if(service is null or has_begun, 1, 0)
        or completed_entries != if(service is null or ended_by is not null, 1, 0)
        or wrong_entries > 0
    )
    and not coalesce(expires_at < {{ removed_before() }}, false)
