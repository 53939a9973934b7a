{% macro processed_elsewhere(trigger_name, relation, key, processed_at) -%}
    {#- A row for each row of a relation, as an entry of a trigger's history, and what an import does
        with it. {bound} stands for the time up to which history is removed. -#}
    select
        *,
        {{ key_hash('trigger_id', 'document_key') }} as key_hash,
        {{ key_hash('trigger_id', 'document_key', 2) }} as key_check,
        case
            when key_state = 'MISSING' then 'WITHOUT_KEY'
            when key_state = 'TOO_LONG' then 'KEY_TOO_LONG'
            when started_at is null then 'WITHOUT_TIME'
            when {{ has_expired("timestamp '{bound}'") }} then 'EXPIRED'
            else 'LIVE'
        end as import_outcome
    from (
        select
            settings.trigger_id,
            settings.trigger_name,
            documents.document_key,
            {{ key_state('documents.document_key') }} as key_state,
            documents.started_at,
            {{ expiry('documents.started_at', 'settings.history_time_to_live_ms') }} as expires_at
        from (
            select
                nullif(cast((
                    {{ key }}
                ) as string), '') as document_key,
                try_cast((
                    {{ processed_at }}
                ) as timestamp) as started_at
            from {{ relation }}
        ) as documents
        cross join {{ ref('trigger_settings') }} as settings
        where settings.trigger_name = {{ sql_text(trigger_name) }}
    )
{%- endmacro %}
