{%- set facts = queue_facts() -%}
{#- a transport may have left the seed while its deliveries wait -#}
{%- set api = 'coalesce(transports.api, triggers_this_run.api)' -%}
with

-- the clock is a column, since a literal would be part of the code of the query
triggers_this_run as (

    select
        *,
        {{ run_clock() }} as run_clock
    from {{ ref('triggers_this_run') }}

),

conditions as (

    select * from {{ typed_seed('trigger_conditions') }}

),

in_queue as (

    select * from {{ ref('arriving_deliveries') }}

),

-- deliveries that an operator holds
held as (

    {% if facts.has_holds -%}
        select
            delivery_id,
            trigger_name
        from {{ landed_before('delivery_holds', until='landed') }}
        group by delivery_id, trigger_name
        having max_by(command, struct(issued_at, hold_id)) = 'HOLD'
    {%- else -%}
        select
            cast(null as string) as delivery_id,
            cast(null as string) as trigger_name
        where false
    {%- endif %}

),

-- ---- the condition, and the facts that detection needs. The document is left out from here on

matched as (

    select
        * except (document),
        if(left_out is null, {{ first_matching_condition() }}, null) as condition_position,
        if(
            left_out is null and decided_key is null and not is_gone,
            {{ key_by_expression(facts.key_expressions) | indent(12) }},
            null
        ) as key_by_expression,
        if(left_out is null, sha2(document, 256), null) as document_hash,
        if(left_out = 'REJECTED', {{ delivery_as_json() }}, null) as raw_text
    from in_queue

),

with_settings as (

    select
        matched.*,
        conditions.condition_name,
        conditions.service,
        triggers_this_run.trigger_id,
        triggers_this_run.takes_documents,
        triggers_this_run.run_clock,
        held.delivery_id is not null as is_held,
        triggers_this_run.enabled and triggers_this_run.is_in_seed as is_enabled,
        triggers_this_run.queue_capacity,
        triggers_this_run.processing_mode,
        triggers_this_run.detect_duplicates,
        triggers_this_run.use_history,
        triggers_this_run.history_time_to_live_ms,
        triggers_this_run.resolver,
        triggers_this_run.suspends_on_error,
        triggers_this_run.history_removed_until,
        transports.api as transport_api,
        matched.guaranteed
        and (
            {{ api }} != 'JMS'
            or triggers_this_run.acknowledgement_mode in ('CLIENT_ACKNOWLEDGE', 'TRANSACTED')
        ) as is_eligible,
        {{ redelivery('matched.redelivery_count', 'transports') }} as redelivery,
        case
            when matched.decided_key is not null then matched.decided_key
            when triggers_this_run.key is null
                then {{ document_key('matched', api) | indent(16) }}
            -- a trigger with a key expression uses only its value, never the ids
            when matched.key_by_expression != ''
                then struct(matched.key_by_expression as document_key, 'EXPRESSION' as key_source)
        end as found_key
    from matched
    left join {{ typed_seed('transports') }} as transports
        on matched.transport = transports.transport
    left join triggers_this_run on matched.trigger_name = triggers_this_run.trigger_name
    left join held
        on
            matched.delivery_id = held.delivery_id
            and matched.trigger_name = held.trigger_name
    left join conditions
        on
            matched.trigger_name = conditions.trigger_name
            and matched.condition_position = conditions.position

),

keyed as (

    select
        * except (found_key),
        found_key.document_key,
        found_key.key_source,
        {{ key_state('found_key.document_key') }} as key_state
    from with_settings

),

numbered as (

    select
        *,
        coalesce(is_eligible and detect_duplicates and use_history and key_state = 'USABLE', false)
            as uses_history,
        {% if facts.has_capacity -%}
            row_number() over (
                partition by
                    trigger_name,
                    coalesce(takes_documents, false)
                    and left_out is null
                    and not is_held
                    and not is_gone
                    and not examined
                order by received_at, delivery_id
            ) as queue_number
        {%- else -%}
        0 as queue_number
        {%- endif %}
    from keyed

),

final as (

    select
        * except (
            takes_documents, is_enabled, is_held, is_gone, queue_number, left_out, landed_at,
            key_by_expression, decided_key, run_clock, errors_to, condition_position,
            queue_capacity, trigger_id
        ),
        -- a row without landed_at counts as landed now, and so does one of a time that nobody can
        -- compute with
        if(
            left_out is null,
            coalesce(if(year(landed_at) between 1 and 9999, landed_at, null), run_clock),
            landed_at
        ) as landed_at,
        case
            when left_out is not null then null
            when not is_enabled then 'DISABLED'
            when not takes_documents then 'SUSPENDED'
            when is_held then 'HELD'
            when is_gone then 'LANDED_ROW_GONE'
            when queue_capacity > 0 and not examined and queue_number > queue_capacity
                then 'QUEUE_CAPACITY'
        end as waiting_reason,
        case
            when left_out is not null then left_out
            when waiting_reason is not null then 'WAITING'
            else 'QUEUED'
        end as queue_outcome,
        if(uses_history, {{ key_hash('trigger_id', 'document_key') }}, null) as key_hash,
        if(uses_history, {{ key_hash('trigger_id', 'document_key', 2) }}, null) as key_check,
        '{{ invocation_id }}' as for_run_id
    from numbered

)

select * from final
