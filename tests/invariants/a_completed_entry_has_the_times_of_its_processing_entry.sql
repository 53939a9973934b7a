-- A completed entry starts with the processing one and expires with it, or when its service has
-- ended where that is later.
{%- set run = checked_run(
    ref('decisions'), ref('in_execution_this_run'), ref('opened_this_run')
) %}
with

entries as (

    select * from {{ written_by(run, ref('history_ledger')) | indent(4) }}

),

processing as (

    select * from entries
    where has_processing

),

-- what completes in this run; of a service that began before it the processing entry stands in an
-- earlier run
expected as (

    select
        delivery_id,
        trigger_name,
        key_hash,
        key_check,
        started_at,
        expires_at,
        true as begins
    from {{ ref('decisions') }}
    where for_run_id = {{ run }} and adds_to_history and service is null
    union all
    select
        delivery_id,
        trigger_name,
        key_hash,
        key_check,
        started_at,
        completed_expires_at as expires_at,
        begins_now as begins
    from {{ ref('in_execution_this_run') }}
    where for_run_id = {{ run }} and is_completed
    union all
    select
        delivery_id,
        trigger_name,
        key_hash,
        key_check,
        started_at,
        completed_expires_at as expires_at,
        true as begins
    from {{ ref('opened_this_run') }}
    where for_run_id = {{ run }} and ended_by is not null

),

final as (

    select
        entries.delivery_id,
        entries.trigger_name,
        entries.started_at,
        entries.expires_at,
        expected.started_at as expected_started_at,
        expected.expires_at as expected_expires_at
    from entries
    left join expected
        on
            entries.delivery_id = expected.delivery_id
            and entries.trigger_name = expected.trigger_name
    left join processing
        on
            entries.delivery_id = processing.delivery_id
            and entries.trigger_name = processing.trigger_name
    where
        entries.has_completed
        and not (
            entries.key_hash <=> expected.key_hash
            and entries.key_check <=> expected.key_check
            and entries.started_at <=> expected.started_at
            and entries.expires_at <=> expected.expires_at
            and (
                not expected.begins
                or entries.started_at <=> processing.started_at
                -- it has expired before this one, and is removed
                or (processing.delivery_id is null and entries.started_at < {{ removed_before() }})
            )
        )

)

select * from final
