-- depends_on: {{ ref('published_runs') }}
with

-- ---- what was decided, and what is not decided yet

decided as (

    select
        delivery_id,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,
        key_state,
        redelivery,
        redelivery_count,
        recoveries,
        status,
        decided_by,
        rule_id,
        history_state,
        matched_delivery_id,
        resolver_result,
        message,
        condition_name,
        service,
        run_id,
        received_at,
        landed_received_at,
        decided_at
    from {{ ref('document_status') }}

),

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
        -- of the delivery at which a trigger was suspended by a rule
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

-- ---- the delivery as it landed; of one delivery_id the first landed rules

landed as (

    select
        deliveries.delivery_id,
        deliveries.received_at,
        min_by(
            named_struct(
                'landed_at', deliveries.landed_at,
                'transport', deliveries.transport,
                'document_type', deliveries.document_type,
                'destination', deliveries.destination,
                'guaranteed', deliveries.guaranteed,
                'uuid', deliveries.uuid,
                'track_id', deliveries.track_id,
                'event_id', deliveries.event_id,
                'transport_api', transports.api,
                'counts_deliveries', transports.counts_deliveries,
                'first_delivery_count', transports.first_delivery_count
            ),
            -- a transport may have left the seed since
            struct(
                transports.transport is null,
                deliveries.landed_at,
                deliveries.landed_file,
                deliveries.landed_position
            )
        ) as first_landed
    from (
        select
            *,
            _file as landed_file,
            _pos as landed_position
        from {{ source('landing', 'deliveries') }}
        where {{ contract_breach('true') }} is null
    ) as deliveries
    left join {{ transports_of_seed() }} as transports
        on deliveries.transport = transports.transport
    group by deliveries.delivery_id, deliveries.received_at

),

settings as (

    select * from {{ ref('trigger_settings') }}

),

waiting_with_key as (

    select
        undecided.*,
        landed.first_landed.document_type,
        -- what an expression gives is known when the delivery is decided
        settings.key is not null as has_key_expression,
        if(
            settings.key is null,
            {{ document_key('landed.first_landed', 'landed.first_landed.transport_api')
                | indent(12) }},
            null
        ) as document_key,
        if(
            settings.key is null,
            {{ key_source('landed.first_landed', 'landed.first_landed.transport_api')
                | indent(12) }},
            null
        ) as key_source,
        case
            when
                not coalesce(landed.first_landed.counts_deliveries, false)
                or undecided.redelivery_count is null
                or undecided.redelivery_count < 0
                then 'UNDEFINED'
            when undecided.redelivery_count <= landed.first_landed.first_delivery_count
                then 'FIRST'
            else 'REDELIVERED'
        end as redelivery
    from undecided
    left join landed
        on
            undecided.landed_delivery_id = landed.delivery_id
            and undecided.landed_received_at = landed.received_at
    left join settings on undecided.trigger_name = settings.trigger_name

),

waiting as (

    select
        *,
        case
            when has_key_expression then 'USABLE'
            when document_key is null then 'MISSING'
            when char_length(document_key) > 96 then 'TOO_LONG'
            else 'USABLE'
        end as key_state
    from waiting_with_key

),

-- a suspended delivery has no row of its own: which rule stopped it follows from what stopped it
stopped as (

    select
        waiting.*,
        case
            when waiting.suspension.cause = 'HISTORY_ERROR' then 'UNAVAILABLE'
            when settings.use_history and waiting.key_state = 'USABLE' then 'PROCESSING'
        end as history_state,
        if(waiting.suspension.cause = 'RESOLVER_ERROR', 'TRANSIENT_ERROR', null)
            as resolver_result,
        settings.use_history
    from waiting
    left join settings on waiting.trigger_name = settings.trigger_name

),

waiting_with_rule as (

    select
        *,
        if(
            suspension is null,
            null,
            {{ decision_rule(
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
            ) }}.rule_id
        ) as rule_id
    from stopped

),

all_deliveries as (

    select
        *,
        cast(null as timestamp) as waiting_since,
        cast(null as string) as reason_in_words
    from decided
    union all
    select
        delivery_id,
        landed_delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,
        key_state,
        redelivery,
        redelivery_count,
        recoveries,
        cast(null as string) as status,
        cast(null as string) as decided_by,
        rule_id,
        if(rule_id is null, null, history_state) as history_state,
        cast(null as string) as matched_delivery_id,
        resolver_result,
        if(rule_id is null, null, suspension.reason) as message,
        cast(null as string) as condition_name,
        cast(null as string) as service,
        cast(null as string) as run_id,
        received_at,
        landed_received_at,
        cast(null as timestamp) as decided_at,
        waiting_since,
        reason_in_words
    from waiting_with_rule

),

-- ---- what happened afterwards

told as (

    select
        delivery_id,
        trigger_name,
        concat(
            'its service told: ',
            array_join(
                transform(
                    sort_array(
                        collect_list(
                            named_struct(
                                'told_at', coalesce(recorded_at, ended_at, started_at),
                                'execution_id', execution_id,
                                'event', event,
                                'attempt', attempt,
                                'message', message
                            )
                        )
                    ),
                    e -> concat_ws(
                        ' ',
                        e.event,
                        concat('(attempt ', e.attempt, ')'),
                        {{ time_in_words('e.told_at') }},
                        concat('"', e.message, '"')
                    )
                ),
                ', '
            )
        ) as told
    from {{ source('landing', 'trigger_executions') }}
    group by delivery_id, trigger_name

),

noted as (

    select
        delivery_id,
        trigger_name,
        array_join(
            transform(
                sort_array(
                    collect_list(
                        named_struct('happened_at', happened_at, 'event', event, 'message', message)
                    )
                ),
                e -> concat(e.event, ' ', {{ time_in_words('e.happened_at') }}, ': ', e.message)
            ),
            ', '
        ) as noted
    from {{ ref('journal_entries') }}
    where event in ('LOST', 'RESUBMITTED', 'REFUSED')
    group by delivery_id, trigger_name

),

-- a recovery or a resubmission is a delivery of its own
came_again as (

    select
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        trigger_name,
        collect_list(
            named_struct('decided_at', decided_at, 'delivery_id', delivery_id, 'status', status)
        ) as deliveries
    from {{ ref('document_status') }}
    where delivery_id like '%/recovery-%' or delivery_id like '%/resubmission-%'
    group by {{ landed_delivery_id('delivery_id') }}, trigger_name

),

remembered as (

    select
        delivery_id,
        trigger_name,
        max(expires_at) as remembered_until
    from {{ ref('document_history') }}
    group by delivery_id, trigger_name

),

-- ---- together, in words

facts as (

    select
        all_deliveries.*,
        landed.first_landed.landed_at,
        landed.first_landed.transport,
        landed.first_landed.destination,
        landed.first_landed.guaranteed,
        landed.first_landed.transport_api,
        landed.first_landed.counts_deliveries,
        landed.first_landed.first_delivery_count,
        settings.key,
        settings.detect_duplicates,
        settings.use_history,
        settings.history_time_to_live_ms,
        settings.resolver,
        execution_state.state_in_words,
        told.told,
        noted.noted,
        remembered.remembered_until,
        concat(
            'came again as ',
            nullif(
                array_join(
                    transform(
                        sort_array(
                            filter(
                                came_again.deliveries,
                                d -> d.decided_at > all_deliveries.decided_at
                            )
                        ),
                        d -> concat(d.delivery_id, ': ', d.status)
                    ),
                    ', '
                ),
                ''
            )
        ) as returned
    from all_deliveries
    left join landed
        on
            all_deliveries.landed_delivery_id = landed.delivery_id
            and all_deliveries.landed_received_at = landed.received_at
    left join settings on all_deliveries.trigger_name = settings.trigger_name
    left join {{ ref('execution_state') }} as execution_state
        on
            all_deliveries.delivery_id = execution_state.delivery_id
            and all_deliveries.trigger_name = execution_state.trigger_name
    left join told
        on
            all_deliveries.delivery_id = told.delivery_id
            and all_deliveries.trigger_name = told.trigger_name
    left join noted
        on
            all_deliveries.delivery_id = noted.delivery_id
            and all_deliveries.trigger_name = noted.trigger_name
    left join came_again
        on
            all_deliveries.landed_delivery_id = came_again.landed_delivery_id
            and all_deliveries.trigger_name = came_again.trigger_name
    left join remembered
        on
            all_deliveries.delivery_id = remembered.delivery_id
            and all_deliveries.trigger_name = remembered.trigger_name

),

in_words as (

    select
        *,
        coalesce(
            concat(status, ', ', {{ status_in_words('status') }}), 'WAITING, not decided yet'
        ) as outcome,
        {{ origin_in_words('facts') }} as what_came,
        {{ routing_in_words('facts') }} as how_routed,
        {{ key_in_words('facts') }} as key_from,
        {{ redelivery_in_words('facts') }} as count_says,
        {{ history_in_words('facts') }} as history_says,
        {{ resolver_in_words('facts') }} as resolver_says,
        case
            when status is not null
                then concat(
                    'rule ',
                    rule_id,
                    ', ',
                    {{ time_in_words('decided_at') }},
                    ', run ',
                    run_id,
                    ': ',
                    {{ rule_in_words('facts') }}, '; decided by: ',
                    {{ decided_by_in_words('decided_by') }}
                )
            when rule_id is not null
                then concat(
                    'not decided: by rule ', rule_id, ' it has suspended the trigger: ',
                    {{ rule_in_words('facts') }}
                )
            else 'not decided yet'
        end as decision,
        {{ afterwards_in_words('facts') }} as afterwards,
        {{ advice_in_words('facts') }} as other_settings
    from facts

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        landed_delivery_id,
        document_type,
        document_key,

        -- the story
        status,
        rule_id,
        what_came,
        how_routed,
        key_from,
        count_says,
        history_says,
        resolver_says,
        decision,
        afterwards,
        other_settings,
        concat_ws(
            '\n',
            concat('delivery ', delivery_id, ' in trigger ', trigger_name, ': ', outcome),
            concat('  came        ', what_came),
            concat('  routed      ', how_routed),
            concat('  key         ', key_from),
            concat('  count       ', count_says),
            concat('  history     ', history_says),
            concat('  resolver    ', resolver_says),
            concat('  decision    ', decision),
            concat('  afterwards  ', afterwards),
            concat('  a setting that would have changed it: ', other_settings)
        ) as explanation,

        -- times
        received_at,
        landed_received_at,
        decided_at
    from in_words

)

select * from final
