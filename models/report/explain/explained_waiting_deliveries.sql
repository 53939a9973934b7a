with

undecided as (

    select
        waiting.delivery_id,
        waiting.landed_delivery_id,
        waiting.trigger_name,
        waiting.redelivery_count,
        waiting.recoveries,
        waiting.received_at,
        waiting.landed_received_at,
        waiting.waiting_since,
        waiting_documents.reason_in_words,
        -- null unless a rule suspended the trigger because of this delivery
        if(
            waiting.examined,
            try_element_at(
                filter(
                    states.suspensions,
                    s -> s.caused_by = waiting.delivery_id
                    and s.cause in ('HISTORY_ERROR', 'RESOLVER_ERROR')
                ),
                1
            ),
            null
        ) as suspension
    from {{ ref('waiting_deliveries') }} as waiting
    left join {{ ref('waiting_documents') }} as waiting_documents
        on
            waiting.delivery_id = waiting_documents.delivery_id
            and waiting.trigger_name = waiting_documents.trigger_name
    left join {{ ref('trigger_states') }} as states on waiting.trigger_name = states.trigger_name

),

with_key as (

    select
        undecided.*,
        landed.first_landed.document_type,
        -- a key by expression is known only once the delivery is decided
        settings.key is not null as has_key_expression,
        settings.use_history,
        if(
            settings.key is null,
            {{ document_key('landed.first_landed', 'landed.first_landed.transport_api')
                | indent(12) }},
            null
        ) as found_key,
        found_key.document_key,
        found_key.key_source,
        {{ redelivery('undecided.redelivery_count', 'landed.first_landed') }} as redelivery
    from undecided
    left join {{ ref('first_landed_deliveries') }} as landed
        on
            undecided.landed_delivery_id = landed.delivery_id
            and undecided.landed_received_at = landed.received_at
    left join {{ ref('trigger_settings') }} as settings
        on undecided.trigger_name = settings.trigger_name

),

-- a suspended delivery has no status row: its rule follows from what suspended the trigger
stopped as (

    select
        *,
        if(has_key_expression, 'USABLE', {{ key_state('document_key') }}) as key_state,
        case
            when suspension.cause = 'HISTORY_ERROR' then 'UNAVAILABLE'
            when use_history and key_state = 'USABLE' then 'PROCESSING'
        end as history_state,
        if(suspension.cause = 'RESOLVER_ERROR', 'TRANSIENT_ERROR', null) as resolver_result
    from with_key

),

final as (

    select
        *,
        if(
            suspension is null,
            null,
            ({{ decision_rule(
                {
                    'use_history': 'use_history',
                    'key_state': 'key_state',
                    'history_state': 'history_state',
                    'resolver_result': 'resolver_result',
                },
                {
                    'eligible': 'true',
                    'detect_duplicates': 'true',
                    'has_resolver': 'true',
                    'redelivery': 'REDELIVERED',
                    'suspends_on_error': 'true',
                },
            ) }}).rule_id
        ) as rule_id
    from stopped

)

select * from final
