{%- set skew = var('clock_skew_tolerance_ms') -%}
{%- set queued = queue_keys() -%}
{#- The time is a partition border: Iceberg prunes whole partitions, and Spark compares no row with
    a literal time, which would be part of the query's code. -#}
{%- set live %}
    select * from {{ last_published('history_ledger') }}
    where
        expires_at >= date_trunc(
            '{{ history_partition_unit() }}',
            timestampadd(millisecond, {{ -skew }}, least({{ queued.oldest }}, {{ latest_time() }}))
        )
{%- endset -%}
{%- set of_this_run = is_of_this_run(live, queued) -%}
{%- do no_rows_where(not has_found('known') and is_empty(ref('in_execution_this_run'))) %}
with

keys as (

    select
        trigger_name,
        key_hash,
        key_check,
        -- the entries of an interrupted document count until its recovery is decided
        bool_or(origin = 'RECOVERY') as has_recovery
    from {{ ref('trigger_queue') }}
    where uses_history and (queue_outcome = 'QUEUED' or origin = 'RECOVERY')
    group by trigger_name, key_hash, key_check

),

live_history as (

    select
        key_hash,
        key_check,
        has_processing,
        has_completed,
        started_at,
        expires_at,
        delivery_id
    from ({{ live }})
    where {{ of_this_run | indent(4) }}

),

-- key_hash and key_check identify trigger and key, so the lookup reads no text column
entries_of_history as (

    -- mostly matching entries are left here: with too many keys to broadcast, the shuffle is small
    select {{ '/*+ broadcast(keys) */' if (queued.number or 0) <= 1000000 }}
        keys.trigger_name,
        keys.key_hash,
        keys.key_check,
        live_history.delivery_id,
        live_history.started_at,
        if(
            live_history.has_processing and not live_history.has_completed and keys.has_recovery,
            {{ forever() }},
            {{ live_until('live_history.expires_at') }}
        ) as live_until,
        live_history.has_processing,
        live_history.has_completed,
        false as makes_copies_wait
    from live_history
    inner join keys
        on
            live_history.key_hash = keys.key_hash
            and live_history.key_check = keys.key_check

),

in_execution_this_run as (

    select documents.*
    from {{ ref('in_execution_this_run') }} as documents
    inner join keys
        on
            documents.trigger_name = keys.trigger_name
            and documents.key_hash = keys.key_hash
            and documents.key_check = keys.key_check

),

-- a document counts even if its entries have expired, as long as it is unfinished, and also in the
-- run that finds it interrupted
entries_of_documents as (

    select
        trigger_name,
        key_hash,
        key_check,
        delivery_id,
        -- null until its service has begun: until then the document only makes copies wait
        started_at,
        if(
            ended_by is null or ended_by = 'INTERRUPTED',
            {{ forever() }},
            {{ live_until('expires_at') }}
        ) as live_until,
        started_at is not null as has_processing,
        false as has_completed,
        makes_copies_wait
    from in_execution_this_run

),

entries_completed_now as (

    select
        trigger_name,
        key_hash,
        key_check,
        delivery_id,
        started_at,
        {{ live_until('completed_expires_at') }} as live_until,
        false as has_processing,
        true as has_completed,
        false as makes_copies_wait
    from in_execution_this_run
    where is_completed

),

entries as (

    select * from entries_of_history
    union all
    select * from entries_of_documents
    union all
    select * from entries_completed_now

),

final as (

    select
        trigger_name,
        key_hash,
        key_check,
        max(if(has_completed, live_until, null)) as completed_until,
        max(if(has_processing, live_until, null)) as processing_until,
        max(if(makes_copies_wait, live_until, null)) as waits_until,
        -- of several documents, one whose service has not begun comes first
        max(
            if(
                makes_copies_wait,
                struct(coalesce(started_at, {{ forever() }}) as started_at, delivery_id),
                null
            )
        ).delivery_id as waits_for_delivery_id,
        sort_array(
            collect_set(
                if(
                    started_at is null,
                    null,
                    named_struct(
                        'started_at', started_at,
                        'live_until', live_until,
                        'delivery_id', delivery_id
                    )
                )
            ),
            false
        ) as entries,
        '{{ invocation_id }}' as for_run_id
    from entries
    group by trigger_name, key_hash, key_check

)

select * from final
