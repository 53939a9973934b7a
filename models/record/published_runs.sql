{{
    config(
        incremental_strategy='append',
        post_hook='{{ publish_run() }}',
    )
}}
-- depends_on: {{ ref('triggers_this_run') }}
-- depends_on: {{ ref('in_execution_this_run') }}
-- depends_on: {{ ref('history_ledger') }}
-- depends_on: {{ ref('document_status') }}
-- depends_on: {{ ref('open_documents') }}
-- depends_on: {{ ref('waiting_deliveries') }}
-- depends_on: {{ ref('trigger_states') }}
-- depends_on: {{ ref('journal_entries') }}
-- depends_on: {{ ref('rejected_deliveries') }}
-- depends_on: {{ ref('stg_rejected_landings') }}
{#- after the tests, and before the snapshots of the ledgers are recorded below -#}
{%- do remove_expired() -%}
{%- set run = current_run() -%}
{%- set returning = ref('returning_this_run') %}
with

taken as (

    select
        coalesce(sum(deliveries) filter (where queue_outcome = 'WAITING'), 0) as not_examined,
        coalesce(sum(deliveries) filter (where queue_outcome in ('UNROUTED', 'NOT_TAKEN')), 0)
            as unrouted,
        coalesce(sum(deliveries) filter (where queue_outcome = 'REJECTED'), 0) as rejected,
        -- returning and waiting deliveries are counted at their source, to notice a lost one
        {% if not is_empty(returning) -%}
            (
                select count_if(not returning_this_run.had_waited)
                from {{ returning }} as returning_this_run
            ) +
        {%- endif %}
        {% if not is_empty(last_published('waiting_deliveries')) -%}
            (
                select count(*)
                from {{ last_published('waiting_deliveries', stored=true) }} as waiting_deliveries
                left semi join {{ ref('triggers_this_run') }} as triggers_this_run
                    on
                        waiting_deliveries.trigger_name = triggers_this_run.trigger_name
                        and triggers_this_run.rewrites_waiting
            ) +
        {%- endif %}
        coalesce(sum(deliveries) filter (where origin = 'LANDED' and not had_waited), 0) as taken,
        {{ greatest_received_at() }} as greatest_received_at,
        {{ event_time_now() }} as event_time
    from {{ queue_counts() }}

),

decided as (

    select
        coalesce(sum(documents) filter (where is_decided), 0) as decided,
        coalesce(sum(documents) filter (where not is_decided), 0) as undecided,
        sort_array(
            collect_list(
                named_struct('trigger_name', trigger_name, 'status', status, 'documents', documents)
            ) filter (where is_decided)
        ) as decided_by_trigger
    from (
        select
            trigger_name,
            status,
            is_decided,
            sum(documents) as documents
        from {{ decision_counts() }}
        group by trigger_name, status, is_decided
    )

),

final as (

    select
        '{{ invocation_id }}' as run_id,
        'run' as kind,
        {{ run.publication_number if run else 0 }} as publication_number,
        {{ run.number if run else 0 }} as run_number,
        {{ run_clock() }} as started_at,
        current_timestamp() as published_at,
        taken.event_time,
        taken.greatest_received_at,
        taken.taken,
        decided.decided,
        decided.undecided + taken.not_examined as waiting,
        taken.unrouted,
        taken.rejected,
        decided.decided_by_trigger,
        {{ history_removal_bound() }} as history_removed_before,
        {{ sql_map(run.landed_now() if run else {}) }} as landed_snapshots,
        {{ sql_map(run.starts if run else {}) }} as ledger_starts,
        {{ sql_map(adapter.exactly_once.branch_snapshots() if run else {}) }} as ledger_publishes
    from taken
    cross join decided

)

select * from final
