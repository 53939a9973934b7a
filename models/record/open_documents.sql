{{ config(materialized='ledger', write='replace') }}
with

still_open as (

    select
        documents.* except (attempts, run_id),
        -- attempts count anew after the trigger was resumed
        if(
            current_triggers.resumed_at >= documents.last_event_at, 0, documents.attempts
        ) as attempts,
        documents.run_id
    from {{ ref('documents_in_execution') }} as documents
    left join {{ ref('current_triggers') }} as current_triggers
        on documents.trigger_name = current_triggers.trigger_name
    where documents.ended_by is null

),

opened as (

    select
        *,
        false as begun,
        0 as attempts,
        cast(null as string) as last_event,
        cast(null as timestamp) as last_event_at,
        cast(null as timestamp) as last_started_at,
        cast(null as string) as last_message,
        {{ run_clock() }} as decided_at,
        for_run_id as run_id
    from {{ ref('decisions') }}
    where status in ('NEW', 'NOT_CHECKED') and service is not null

),

opened_with_entries as (

    select
        * except (key_hash, key_check, started_at, expires_at),
        -- only a document with entries has their times and hashes
        if(adds_to_history, key_hash, null) as key_hash,
        if(adds_to_history, key_check, null) as key_check,
        if(adds_to_history, started_at, null) as started_at,
        if(adds_to_history, expires_at, null) as expires_at
    from opened

),

final as (

    {% set names = model.columns.keys() | join(', ') if model.columns else '*' -%}
    select {{ names }} from still_open
    union all
    select {{ names }} from opened_with_entries

)

select * from final
