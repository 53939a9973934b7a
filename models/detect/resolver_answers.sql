{{ config(materialized='answers') }}
{%- set run = current_run() -%}
{%- set triggers = [] -%}
{%- for name in (run.found.get('triggers_with_resolver', []) if run else []) -%}
    {%- do triggers.append(sql_text(name)) -%}
{%- endfor %}
with

-- ---- deliveries whose rule needs an answer

candidates as (

    select
        *,
        -- NEW adds to history or starts a service, so what later deliveries need may change
        (uses_history and condition_name is not null)
        or (asks_in_order and service is not null) as ends_on_new,
        bool_or(is_asked_later) over (partition by trigger_name) as is_another_asked_later,
        uses_history and suspends_on_error and history_state != 'UNAVAILABLE'
            as ends_on_transient_error
    from {{ ref('examined_deliveries') }}
    where
        needs_answer
        and resolver_result is null
        and waits_for_service_of is null
        -- as literals, so that Spark prunes every other delivery before detection
        and {{ 'trigger_name in (' ~ triggers | join(', ') ~ ')' if triggers else 'true' }}

),

asked_now as (

    select * from candidates
    where not is_asked_later

),

-- ---- with the document, which the resolver gets

landed as (

    select *
    from {{ accepted_deliveries('landed') }}
    where {{ on_days('received_at', run.found.get('days_with_resolver', []) if run else none) }}

),

-- joined by delivery_id, since compaction moves rows. Of several rows the one with the examined
-- document counts
with_document as (

    select
        any_value(candidates.candidate) as candidate,
        min_by(
            landed.document,
            struct(
                not sha2(landed.document, 256) <=> candidates.document_hash,
                {{ order_of_landing('landed') }}
            )
        ) as landed_document
    from (
        select
            delivery_id,
            trigger_name,
            landed_delivery_id,
            landed_received_at,
            document_hash,
            struct(*) as candidate
        from asked_now
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

given as (

    select
        with_document.candidate.*,
        coalesce(edited.document, with_document.landed_document) as document
    from with_document
    left join edited on with_document.candidate.resubmission_id = edited.resubmission_id

),

-- ---- one array per key, in the order of its chain. Without history: in a serial trigger one per
-- ---- key and one for all deliveries without a key, in a concurrent trigger one per delivery

chains as (

    select /*+ repartition({{ var('resolver_tasks') }}) */
        resolver,
        trigger_name,
        bool_or(is_another_asked_later) as is_another_asked_later,
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
    from given
    group by
        resolver,
        trigger_name,
        key_hash,
        key_check,
        case
            when uses_history then null
            when not asks_in_order then delivery_id
            when key_state = 'USABLE' then document_key
        end,
        asks_in_order and key_state = 'USABLE'

),

asked as (

    select
        trigger_name,
        resolver,
        size(chain) as chain_length,
        is_another_asked_later,
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
        size(asked.answers) < asked.chain_length
        or coalesce(asked.is_another_asked_later, false) as is_cut_short,
        '{{ invocation_id }}' as for_run_id
    from asked
        lateral view explode(asked.answers) as answer

)

select * from final
