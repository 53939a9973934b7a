{{ config(materialized='answers') }}
{%- set days = days_with_resolver() if model.resource_type != 'unit_test' else none -%}
{%- set answered = this if execute and model.resource_type != 'unit_test' else none %}
-- depends_on: {{ ref('history_matches') }}
with

examined as (

    {{ examined_deliveries(answered, whom_to_ask=true) | indent(4) }}

),

-- ---- where a rule needs an answer

candidates as (

    select
        *,
        -- what a NEW one adds to history changes what those behind it need
        uses_history and condition_name is not null as ends_on_new,
        uses_history and suspends_on_error and history_state != 'UNAVAILABLE'
            as ends_on_transient_error
    from examined
    where
        rule_id is null
        and not is_behind
        and history_state != 'WAITS'
        and resolver_result is null

),

-- ---- with what a resolver is told

landed as (

    select *
    from (
        select
            *,
            _file as landed_file,
            _pos as landed_position
        from {{ landed_before('deliveries', until='landed') }}
    )
    where
        {{ contract_breach('true') }} is null
        and {{ on_days('received_at', days) }}

),

-- by name, since its file may have been compacted; of one delivery_id the first landed rules
with_document as (

    select
        any_value(candidates.candidate) as candidate,
        min_by(
            landed.document,
            struct(landed.landed_at, landed.landed_file, landed.landed_position)
        ) as landed_document
    from (
        select
            delivery_id,
            trigger_name,
            landed_delivery_id,
            landed_received_at,
            struct(*) as candidate
        from candidates
    ) as candidates
    left join landed
        on
            candidates.landed_delivery_id = landed.delivery_id
            and candidates.landed_received_at = landed.received_at
    group by candidates.delivery_id, candidates.trigger_name

),

edited as (

    {{ edited_documents() | indent(4) }}

),

told as (

    select
        with_document.candidate.*,
        coalesce(edited.document, with_document.landed_document) as document
    from with_document
    left join edited on with_document.candidate.resubmission_id = edited.resubmission_id

),

-- ---- one array for each key, in the order of its chain; without history each stands alone

chains as (

    select /*+ repartition({{ var('resolver_tasks') }}) */
        resolver,
        trigger_name,
        array_sort(
            collect_list(
                struct(
                    received_at,
                    delivery_id,
                    ends_on_new,
                    ends_on_transient_error,
                    document_type as document_type_name,
                    redelivery_count,
                    uuid,
                    track_id,
                    event_id,
                    document,
                    transport,
                    trigger_name
                )
            )
        ) as chain
    from told
    group by
        resolver,
        trigger_name,
        key_hash,
        key_check,
        if(uses_history, null, delivery_id)

),

asked as (

    select
        trigger_name,
        resolver,
        size(chain) as chain_length,
        ask_resolver(resolver, trigger_name, {{ var('resolver_timeout_ms') }}, chain) as answers
    from chains

),

final as (

    select
        asked.trigger_name,
        answer.delivery_id,
        asked.resolver,
        answer.resolver_result,
        answer.message,
        size(asked.answers) < asked.chain_length as is_cut_short,
        '{{ invocation_id }}' as for_run_id
    from asked
        lateral view explode(asked.answers) as answer

)

select * from final
