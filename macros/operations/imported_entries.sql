{% macro imported_entries(documents) -%}
    {#- The rows that a piece of an import adds to history_ledger: one for each document that history
        does not know as completed for as long. {piece} stands for the condition of the piece, {since}
        for its first day, {history} for the ledger before it, {run_id} and {number} for its
        publication. -#}
    with

    documents as (

        select
            trigger_name,
            document_key,
            key_hash,
            key_check,
            max(started_at) as started_at,
            max(expires_at) as expires_at
        from ({{ documents }})
        where import_outcome = 'LIVE' and {piece}
        group by trigger_name, document_key, key_hash, key_check

    ),

    known as (

        select
            key_hash,
            key_check,
            expires_at
        from {history}
        -- no document of the piece expires before
        where has_completed and expires_at >= timestamp '{since}'

    ),

    added as (

        select documents.*
        from documents
        left anti join known
            on
                documents.key_hash = known.key_hash
                and documents.key_check = known.key_check
                and documents.expires_at <= known.expires_at

    )

    select
        *,
        true as has_processing,
        true as has_completed,
        concat('import-{number}/', document_key) as delivery_id,
        '{run_id}' as run_id
    from added
{%- endmacro %}
