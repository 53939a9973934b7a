{% macro rebuild_history() %}
    {#- The entries that follow from the other ledgers and from what services have reported: two for
        a document that has ended, one for a document whose service has begun, or that is LOST or
        was interrupted, none before the start. -#}
    {%- set entries -%}
        with

        statuses as (

            select * from {{ last_published('document_status') }}
            -- only a document with entries has a time to live for them
            where history_time_to_live_ms is not null or started_at is not null

        ),

        -- not_ended has the documents that have not ended, so any other ended with its last failure
        settings as (

            select distinct
                trigger_name,
                0 as max_retry_attempts,
                'throw' as on_retry_failure,
                cast(null as timestamp) as resumed_at
            from statuses

        ),

        executions as (

            select executions.*
            from {{ source('landing', 'trigger_executions') }} as executions
            left semi join statuses
                on
                    executions.delivery_id = statuses.delivery_id
                    and executions.trigger_name = statuses.trigger_name

        ),

        reported as (

            {{ reported_by_services('executions', 'settings') | indent(12) }}

        ),

        not_ended as (

            select
                delivery_id,
                trigger_name,
                true as is_open,
                started_at
            from {{ last_published('open_documents') }}
            union all
            select
                delivery_id,
                trigger_name,
                false as is_open,
                cast(null as timestamp) as started_at
            from {{ last_published('journal_entries') }}
            where event in ('LOST', 'INTERRUPTED')

        ),

        timed as (

            select
                statuses.trigger_name,
                statuses.document_key,
                statuses.delivery_id,
                statuses.run_id,
                statuses.history_time_to_live_ms,
                statuses.expires_at as decided_expires_at,
                base64(unhex(sha1(statuses.trigger_name))) as trigger_id,
                coalesce(not_ended.is_open, false) as is_open,
                not_ended.delivery_id is null as has_ended,
                case
                    when not_ended.is_open then not_ended.started_at
                    when statuses.started_at is not null then statuses.started_at
                    -- old executions may be gone: the service began no earlier than the decision
                    else {{ feed_time(
                        'statuses.received_at',
                        'statuses.landed_at',
                        'coalesce(reported.began_at, statuses.decided_at)',
                    ) }}
                end as started_at,
                {{ feed_time(
                    'statuses.received_at', 'statuses.landed_at', 'reported.service_ended_at'
                ) }} as service_ended_at
            from statuses
            left join reported
                on
                    statuses.delivery_id = reported.delivery_id
                    and statuses.trigger_name = reported.trigger_name
            left join not_ended
                on
                    statuses.delivery_id = not_ended.delivery_id
                    and statuses.trigger_name = not_ended.trigger_name

        ),

        with_expiry as (

            select
                *,
                coalesce(
                    decided_expires_at, {{ expiry('started_at', 'history_time_to_live_ms') }}
                ) as expires_at,
                {{ key_hash('trigger_id', 'document_key') }} as key_hash,
                {{ key_hash('trigger_id', 'document_key', 2) }} as key_check,
                row_number() over (
                    partition by trigger_name, document_key order by started_at desc, delivery_id
                ) = 1 as is_last_of_key
            from timed
            where started_at is not null

        ),

        -- copies that wait for an open document do not wait for an earlier one of their key
        awaited as (

            select awaited.*
            from {{ awaited_until(last_published('waiting_deliveries')) }} as awaited
            left anti join {{ last_published('open_documents') }} as open_documents
                on
                    awaited.trigger_name = open_documents.trigger_name
                    and awaited.key_hash = open_documents.key_hash

        ),

        with_completion as (

            select
                with_expiry.*,
                greatest(
                    with_expiry.expires_at, with_expiry.service_ended_at, awaited.until
                ) as completed_expires_at
            from with_expiry
            left join awaited
                on
                    with_expiry.trigger_name = awaited.trigger_name
                    and with_expiry.key_hash = awaited.key_hash
                    and with_expiry.is_last_of_key

        )

        select
            trigger_name,
            document_key,
            ledger_row.has_processing,
            ledger_row.has_completed,
            started_at,
            ledger_row.expires_at,
            delivery_id,
            run_id,
            key_hash,
            key_check
        from with_completion
            lateral view explode({{ history_rows('true', 'has_ended') | indent(12) }}) as ledger_row
    {%- endset -%}
    {%- do log('exactly_once: ' ~ operations().rebuild_history(entries), info=true) -%}
{% endmacro %}
