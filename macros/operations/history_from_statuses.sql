{% macro history_from_statuses() -%}
    {#- The entries of history that follow from the other ledgers: two for a document that has ended,
        one for a document that is open, LOST, or was interrupted and has come back. -#}
    select
        documents.trigger_id,
        documents.trigger_name,
        documents.document_key,
        processing_status,
        documents.started_at,
        documents.expires_at,
        documents.delivery_id,
        documents.run_id,
        {{ key_hash('documents.trigger_id', 'documents.document_key') }} as key_hash,
        {{ key_hash('documents.trigger_id', 'documents.document_key', 2) }} as key_check
    from (
        select
            statuses.*,
            base64(unhex(sha1(statuses.trigger_name))) as trigger_id,
            not_ended.delivery_id is null as has_ended
        from {{ last_published('document_status') }} as statuses
        left join (
            select
                delivery_id,
                trigger_name
            from {{ last_published('open_documents') }}
            union
            select
                delivery_id,
                trigger_name
            from {{ last_published('journal_entries') }}
            where event in ('LOST', 'INTERRUPTED')
        ) as not_ended
            on
                statuses.delivery_id = not_ended.delivery_id
                and statuses.trigger_name = not_ended.trigger_name
        where statuses.started_at is not null
    ) as documents
        lateral view explode(
            if(documents.has_ended, array('processing', 'completed'), array('processing'))
        ) as processing_status
{%- endmacro %}
