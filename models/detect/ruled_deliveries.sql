{{ config(materialized='ephemeral') }}
{%- set run = current_run() -%}
-- depends_on: {{ ref('decision_rules') }}
with

-- if every key comes once, the run leaves out the fold, which saves a tenth of a small run
chained as (

    {% if has_found('in_chains') -%}
        select * from {{ ref('chained_deliveries') }}
    {%- else -%}
        select
            *,
            false as is_behind,
            false as is_behind_unanswered,
            cast(null as string) as delivery_id,
            cast(null as string) as stopped_at_delivery_id
        from {{ ref('history_matches') }}
        where false
    {%- endif %}

),

-- the history_state of each delivery; in a chain it also covers the deliveries before it
with_history as (

    -- without the hint Spark would shuffle every delivery before it knows how few are in chains
    select {{ '/*+ broadcast(chained) */' if run and run.found.get('in_chains', 1) <= 10000 }}
        queued.*,
        coalesce(chained.is_behind, false) as is_behind,
        coalesce(chained.is_behind_unanswered, false) as is_behind_unanswered,
        chained.stopped_at_delivery_id,
        if(
            queued.is_resubmission_again,
            null,
            coalesce(chained.completed_until, known.completed_until)
        ) as completed_until,
        coalesce(chained.processing_until, known.processing_until) as processing_until,
        coalesce(chained.waits_until, known.waits_until) as waits_until,
        coalesce(chained.waits_for_delivery_id, known.waits_for_delivery_id)
            as waits_for_delivery_id,
        coalesce(chained.entries, known.entries) as entries
    from {{ ref('queued_deliveries') }} as queued
    left join chained
        on
            queued.trigger_name = chained.trigger_name
            and queued.delivery_id = chained.delivery_id
    left join {{ ref('history_matches') }} as known
        on
            queued.uses_history
            and queued.key_hash = known.key_hash
            and queued.key_check = known.key_check
            and queued.trigger_name = known.trigger_name

),

with_state as (

    select
        *,
        if(
            uses_history,
            {{ history_state(
                'completed_until', 'processing_until', 'received_at', 'is_unavailable',
                'removed_until', 'had_waited_for_document'
            ) }},
            'NONE'
        ) as history_state,
        uses_history
        and origin != 'RESUBMISSION'
        and not is_beyond_recovery
        and {{ waits_for_document(
            'completed_until', 'waits_until', 'received_at', 'is_unavailable'
        ) }} as awaits_document,
        awaits_document and not is_behind as is_waiting_for_document
    from with_history

),

-- the rule that decision_rules.csv selects, and the two waits that are not in that table
with_rule as (

    select
        *,
        case
            when is_behind or is_waiting_for_document
                then cast(null as struct<rule_id: string, status: string, decided_by: string>)
            when origin = 'RESUBMISSION'
                then named_struct(
                    'rule_id', 'OPERATOR', 'status', 'NEW', 'decided_by', 'OPERATOR'
                )
            when is_beyond_recovery
                then named_struct(
                    'rule_id', 'MAX_RECOVERIES',
                    'status', 'IN_DOUBT',
                    'decided_by', 'MAX_RECOVERIES'
                )
            else {{ decision_rule({
                'eligible': 'is_eligible',
                'detect_duplicates': 'detect_duplicates',
                'use_history': 'use_history',
                'has_resolver': 'has_resolver',
                'redelivery': 'redelivery',
                'key_state': 'key_state',
                'history_state': 'history_state',
                'resolver_result': 'resolver_result',
                'suspends_on_error': suspends_here('with_state', 'history_state'),
            }) }}
        end as rule
    from with_state

),

final as (

    select
        * except (rule),
        rule.rule_id,
        rule.status,
        rule.decided_by,
        rule is null and not is_behind and not is_waiting_for_document as needs_answer
    from with_rule

)

select * from final
