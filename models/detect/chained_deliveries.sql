{{ config(materialized='ephemeral') }}
{#- if the run has few chains, their hashes become literals, and no other delivery is shuffled -#}
{%- set hashes = current_run().found.get('hashes_of_chains') if current_run() else none -%}
{%- set keys_that_come_again %}
    (select key_hash from {{ ref('queued_deliveries') }}
    where uses_history group by key_hash having count(*) > 1)
{%- endset %}
with

chains as (

    select
        queued.trigger_name,
        queued.key_hash,
        queued.key_check,
        sort_array(
            collect_list(
                named_struct(
                    'turn', if(queued.origin = 'RESUBMISSION', 0, 1),
                    'received_at', queued.received_at,
                    'delivery_id', queued.delivery_id,
                    'origin', queued.origin,
                    'has_condition', queued.condition_name is not null,
                    'has_resolver', queued.has_resolver,
                    'resolver_result', queued.resolver_result,
                    'suspends_on_error', queued.suspends_on_error,
                    'is_beyond_recovery', queued.is_beyond_recovery,
                    'is_resubmission_again', queued.is_resubmission_again,
                    'had_waited_for_document', queued.had_waited_for_document,
                    'is_unavailable', queued.is_unavailable,
                    'removed_until', queued.removed_until,
                    'started_at', queued.started_at,
                    'live_until', {{ live_until('queued.expires_at') }}
                )
            )
        ) as deliveries
    from {{ ref('queued_deliveries') }} as queued
    where
        queued.uses_history
        and queued.key_hash in {{ keys_that_come_again if hashes is none
            else '(' ~ (hashes | join(', ') or 'null') ~ ')' }}
    group by queued.trigger_name, queued.key_hash, queued.key_check
    -- most keys come once in a run and need no chain, only their row of history_matches
    having count(*) > 1

),

with_history as (

    select
        chains.trigger_name,
        chains.key_hash,
        chains.key_check,
        chains.deliveries,
        named_struct(
            'completed_until', history_matches.completed_until,
            'processing_until', history_matches.processing_until,
            'waits_until', history_matches.waits_until
        ) as known,
        history_matches.waits_for_delivery_id,
        history_matches.entries
    from chains
    left join {{ ref('history_matches') }} as history_matches
        on
            chains.key_hash = history_matches.key_hash
            and chains.key_check = history_matches.key_check
            and chains.trigger_name = history_matches.trigger_name

),

folded as (

    select
        *,
        {{ chain_fold('deliveries', 'known') }} as result
    from with_history

),

-- one step for each delivery and for each point (a delivery that became NEW). Steps carry small
-- values and not the arrays
with_steps as (

    select
        trigger_name,
        key_hash,
        key_check,
        known,
        waits_for_delivery_id,
        entries,
        result.stopped_at,
        result.unanswered_at,
        try_element_at(deliveries, least(result.stopped_at, result.unanswered_at) + 1).delivery_id
            as stopped_at_delivery_id,
        concat(
            transform(
                deliveries,
                (d, i) -> named_struct(
                    'chain_position', i,
                    'delivery_id', d.delivery_id,
                    'point', cast(null as struct<
                        chain_position: int, started_at: timestamp, live_until: timestamp,
                        delivery_id: string
                    >)
                )
            ),
            transform(
                result.points,
                p -> named_struct(
                    'chain_position', p.chain_position,
                    'delivery_id', cast(null as string),
                    'point', p
                )
            )
        ) as steps
    from folded

),

steps as (

    select
        with_steps.* except (steps),
        step.chain_position,
        step.delivery_id,
        step.point
    from with_steps
        lateral view explode(steps) as step

),

-- a delivery's history_state comes from history and from the NEW deliveries before it in its chain
with_points as (

    select
        * except (point),
        max(point.live_until) over before_it as chain_live_until,
        -- of several documents, the one that history_matches will name in later runs
        max(
            if(point is not null and point.live_until is null, point.delivery_id, null)
        ) over before_it as chain_waits_for_delivery_id,
        max(
            if(
                point.live_until is null,
                null,
                named_struct(
                    'started_at', point.started_at,
                    'live_until', point.live_until,
                    'delivery_id', point.delivery_id
                )
            )
        ) over before_it as chain_entry,
        point is null as is_delivery
    from steps
    window before_it as (
        partition by trigger_name, key_hash, key_check
        order by chain_position
        range between unbounded preceding and 1 preceding
    )

),

final as (

    select
        trigger_name,
        delivery_id,
        greatest(known.completed_until, chain_live_until) as completed_until,
        greatest(known.processing_until, chain_live_until) as processing_until,
        if(chain_waits_for_delivery_id is null, known.waits_until, {{ forever() }}) as waits_until,
        coalesce(chain_waits_for_delivery_id, waits_for_delivery_id) as waits_for_delivery_id,
        coalesce(chain_position > stopped_at, false) as is_behind,
        coalesce(chain_position > unanswered_at, false) as is_behind_unanswered,
        stopped_at_delivery_id,
        if(
            chain_entry is null,
            entries,
            sort_array(concat(array(chain_entry), coalesce(entries, array())), false)
        ) as entries
    from with_points
    where is_delivery

)

select * from final
