{% macro examined_deliveries(answers=none, whom_to_ask=false) -%}
    {#- The queued deliveries of this run, each with what detection finds out about it and the rule
        that follows with its status, null where it must wait: behind another one, for an
        unfinished document, or for a resolver's answer.

        answers: a relation with what resolvers have answered in this run, none where none is asked.
        whom_to_ask: false to decide. True to find whom to ask: only deliveries of triggers with a
        resolver, and a chain goes on behind a delivery that has no answer yet, since most answers
        leave those behind it as they are; python_udfs stops asking where an answer does not. -#}
    {%- set skew = var('clock_skew_tolerance_ms') -%}
    {#- where every key comes once in this run, nothing of the second part is needed -#}
    {%- set run = adapter.exactly_once.run if execute and model.resource_type != 'unit_test' -%}
    {%- set has_chains = not run or run.keys_come_again -%}
    {%- set is_unavailable = 'true' if var('history_unavailable') else 'false' -%}
    with

    trigger_queue as (

        select * from {{ ref('trigger_queue') }}
        where place = 'QUEUED' {{- " and resolver is not null" if whom_to_ask }}

    ),

    event_time as (

        select {{ event_time_now() }} as now

    ),

    queued as (

        select
            trigger_queue.*,
            trigger_queue.resolver is not null as has_resolver,
            {{ 'answers.resolver_result' if answers else 'cast(null as string)' }} as resolver_result,
            {{ 'answers.message' if answers else 'cast(null as string)' }} as resolver_message,
            trigger_queue.origin = 'RECOVERY'
            and trigger_queue.recoveries > {{ var('max_recoveries') }} as is_beyond_recovery,
            {{ is_unavailable }} and trigger_queue.uses_history as is_unavailable,
            {{ plus_ms('trigger_queue.history_removed_until', skew) }} as removed_until,
            -- without a service entries start at the delivery's time, later where it had waited;
            -- with one they start when the service has begun
            case
                when trigger_queue.service is not null then null
                when trigger_queue.had_waited
                    then greatest(trigger_queue.received_at, event_time.now)
                else trigger_queue.received_at
            end as started_at
        from trigger_queue
        cross join event_time
        {%- if answers %}
            left join {{ answers }} as answers
                on
                    trigger_queue.trigger_name = answers.trigger_name
                    and trigger_queue.delivery_id = answers.delivery_id
                    and answers.for_run_id = '{{ invocation_id }}'
        {%- endif %}

    ),

    timed as (

        select
            *,
            {{ expiry('started_at', 'history_time_to_live_ms') }} as expires_at
        from queued

    ),

    {% if has_chains -%}
        -- ---- deliveries of one key, decided one after the other

        -- most keys come once in a run and meet what history knows of them, no more
        keys_that_come_again as (

            select
                trigger_name,
                key_hash,
                key_check
            from timed
            where uses_history
            group by trigger_name, key_hash, key_check
            having count(*) > 1

        ),

        chains as (

            select
                timed.trigger_name,
                timed.key_hash,
                timed.key_check,
                sort_array(
                    collect_list(
                        named_struct(
                            'turn', if(timed.origin = 'RESUBMISSION', 0, 1),
                            'received_at', timed.received_at,
                            'delivery_id', timed.delivery_id,
                            'origin', timed.origin,
                            'has_condition', timed.condition_name is not null,
                            'has_resolver', timed.has_resolver,
                            'resolver_result', timed.resolver_result,
                            'suspends_on_error', timed.suspends_on_error,
                            'is_beyond_recovery', timed.is_beyond_recovery,
                            'is_unavailable', timed.is_unavailable,
                            'removed_until', timed.removed_until,
                            'started_at', coalesce(timed.started_at, {{ forever() }}),
                            'completed_until', {{ plus_ms('timed.expires_at', skew) }},
                            'processing_until', coalesce(
                                {{ plus_ms('timed.expires_at', skew) }}, {{ forever() }}
                            ),
                            'waits_until', if(timed.service is null, null, {{ forever() }})
                        )
                    )
                ) as deliveries
            from timed
            left semi join keys_that_come_again
                on
                    timed.key_hash = keys_that_come_again.key_hash
                    and timed.key_check = keys_that_come_again.key_check
                    and timed.trigger_name = keys_that_come_again.trigger_name
            where timed.uses_history
            group by timed.trigger_name, timed.key_hash, timed.key_check

        ),

        in_chains as (

            select
                chains.trigger_name,
                chains.key_hash,
                chains.key_check,
                transform(
                    chains.deliveries,
                    (d, i) -> named_struct(
                        'place', i,
                        'received_at', d.received_at,
                        'delivery_id', d.delivery_id,
                        'origin', d.origin,
                        'has_condition', d.has_condition,
                        'has_resolver', d.has_resolver,
                        'resolver_result', d.resolver_result,
                        'suspends_on_error', d.suspends_on_error,
                        'is_beyond_recovery', d.is_beyond_recovery,
                        'is_unavailable', d.is_unavailable,
                        'removed_until', d.removed_until,
                        'started_at', d.started_at,
                        'completed_until', d.completed_until,
                        'processing_until', d.processing_until,
                        'waits_until', d.waits_until
                    )
                ) as deliveries,
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
            {%- if whom_to_ask %}
                -- history that answers by itself leaves nothing to ask
                where
                    history_matches.processing_until is not null
                    or exists(
                        chains.deliveries,
                        d -> d.is_unavailable or coalesce(d.received_at < d.removed_until, false)
                    )
            {%- endif %}

        ),

        folded as (

            select
                *,
                {{ chain_fold('deliveries', 'known', 'OTHER' if whom_to_ask else 'STOP') }} as result
            from in_chains

        ),

        -- what every step carries is small: not the arrays that it comes from
        with_steps as (

            select
                trigger_name,
                key_hash,
                key_check,
                known,
                waits_for_delivery_id,
                entries,
                result.stopped_at,
                try_element_at(deliveries, result.stopped_at + 1).delivery_id as stopped_at_delivery_id,
                concat(
                    transform(
                        deliveries,
                        d -> named_struct(
                            'place', d.place,
                            'delivery_id', d.delivery_id,
                            'point', cast(null as struct<
                                place: int, started_at: timestamp, live_until: timestamp,
                                completed_until: timestamp, processing_until: timestamp,
                                waits_until: timestamp, delivery_id: string
                            >)
                        )
                    ),
                    transform(
                        result.points,
                        p -> named_struct(
                            'place', p.place, 'delivery_id', cast(null as string), 'point', p
                        )
                    )
                ) as steps
            from folded

        ),

        steps as (

            select
                with_steps.* except (steps),
                step.place,
                step.delivery_id,
                step.point
            from with_steps
                lateral view explode(steps) as step

        ),

        -- the state of a delivery follows from history and from the NEW ones before it in its chain
        with_points as (

            select
                * except (point),
                max(point.completed_until) over before_it as chain_completed_until,
                max(point.processing_until) over before_it as chain_processing_until,
                max(point.waits_until) over before_it as chain_waits_until,
                max(
                    if(
                        point is null,
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
                order by place
                range between unbounded preceding and 1 preceding
            )

        ),

        chained as (

            select
                trigger_name,
                delivery_id,
                greatest(known.completed_until, chain_completed_until) as completed_until,
                greatest(known.processing_until, chain_processing_until) as processing_until,
                greatest(known.waits_until, chain_waits_until) as waits_until,
                coalesce(chain_entry.delivery_id, waits_for_delivery_id) as waits_for_delivery_id,
                coalesce(place > stopped_at, false) as is_behind,
                stopped_at_delivery_id,
                if(
                    chain_entry is null,
                    entries,
                    sort_array(concat(array(chain_entry), coalesce(entries, array())), false)
                ) as entries
            from with_points
            where is_delivery

        ),
    {%- endif %}

    -- ---- each delivery by itself: state, rule, status

    meeting as (

        select
            timed.*,
            {% if has_chains -%}
                coalesce(chained.is_behind, false) as is_behind,
                chained.stopped_at_delivery_id,
                coalesce(chained.completed_until, known.completed_until) as completed_until,
                coalesce(chained.processing_until, known.processing_until) as processing_until,
                coalesce(chained.waits_until, known.waits_until) as waits_until,
                coalesce(
                    chained.waits_for_delivery_id, known.waits_for_delivery_id
                ) as waits_for_delivery_id,
                coalesce(chained.entries, known.entries) as entries
            {%- else -%}
                false as is_behind,
                cast(null as string) as stopped_at_delivery_id,
                known.completed_until,
                known.processing_until,
                known.waits_until,
                known.waits_for_delivery_id,
                known.entries
            {%- endif %}
        from timed
        {%- if has_chains %}
            left join chained
                on
                    timed.trigger_name = chained.trigger_name
                    and timed.delivery_id = chained.delivery_id
        {%- endif %}
        left join {{ ref('history_matches') }} as known
            on
                timed.uses_history
                and timed.key_hash = known.key_hash
                and timed.key_check = known.key_check
                and timed.trigger_name = known.trigger_name

    ),

    with_state as (

        select
            *,
            if(
                uses_history,
                {{ history_state(
                    'completed_until', 'waits_until', 'processing_until', 'received_at',
                    'is_unavailable', 'removed_until'
                ) }},
                'NONE'
            ) as history_state
        from meeting

    ),

    ruled as (

        select
            *,
            case
                when is_behind then null
                when origin = 'RESUBMISSION' then 'OPERATOR'
                when is_beyond_recovery then 'MAX_RECOVERIES'
                when history_state = 'WAITS' then null
                else {{ decision_rule(
                    'is_eligible', 'detect_duplicates', 'use_history', 'has_resolver', 'redelivery',
                    'key_state', 'history_state', 'resolver_result',
                    "(suspends_on_error and (history_state != 'UNAVAILABLE' or is_unavailable))"
                ) }}
            end as rule_id
        from with_state

    ),

    -- the rules of the table, and the two that stand outside of it
    decision_rules as (

        select
            rule_id,
            status,
            decided_by
        from {{ ref('decision_rules') }}
        union all
        select
            rule_id,
            status,
            rule_id as decided_by
        from values ('OPERATOR', 'NEW'), ('MAX_RECOVERIES', 'IN_DOUBT') as beyond_the_table (
            rule_id, status
        )

    ),

    with_status as (

        select
            ruled.*,
            decision_rules.status,
            decision_rules.decided_by,
            ruled.rule_id is null
            and not ruled.is_behind
            and ruled.history_state != 'WAITS' as needs_answer
        from ruled
        left join decision_rules on ruled.rule_id = decision_rules.rule_id

    )

    {%- if answers or whom_to_ask -%}
    ,

    -- ---- a resolver looks at what services have done: in a serial trigger it is asked about what
    -- ---- history cannot settle when no earlier document is unfinished, or becomes so in this run

    in_order as (

        select
            *,
            struct(received_at, delivery_id) as age,
            has_resolver and processing_mode = 'serial' and not uses_history as asks_in_order,
            if(key_state = 'USABLE', document_key, null) as usable_key,
            service is not null and coalesce(status in ('NEW', 'NOT_CHECKED'), false)
                as becomes_unfinished,
            -- where nobody is asked in order, each delivery stands alone
            if(has_resolver and processing_mode = 'serial', null, delivery_id) as alone
        from with_status

    ),

    unfinished_of_keys as (

        select
            trigger_name,
            document_key,
            min(struct(received_at, delivery_id)) as first_age
        from {{ ref('documents_in_execution') }}
        where ended_by is null
        group by trigger_name, document_key

    ),

    -- a resubmission holds back its own key only
    unfinished_of_triggers as (

        select
            trigger_name,
            min(struct(received_at, delivery_id)) as first_age
        from {{ ref('documents_in_execution') }}
        where ended_by is null and delivery_id not like '%/resubmission-%'
        group by trigger_name

    ),

    with_unfinished as (

        select
            in_order.*,
            if(
                in_order.usable_key is null,
                least(
                    unfinished_of_triggers.first_age,
                    min(
                        if(
                            in_order.becomes_unfinished and in_order.origin != 'RESUBMISSION',
                            in_order.age,
                            null
                        )
                    ) over (partition by in_order.trigger_name, in_order.alone)
                ),
                least(
                    unfinished_of_keys.first_age,
                    min(if(in_order.becomes_unfinished, in_order.age, null)) over (
                        partition by in_order.trigger_name, in_order.alone, in_order.usable_key
                    )
                )
            ) as first_unfinished
        from in_order
        left join unfinished_of_keys
            on
                in_order.asks_in_order
                and in_order.trigger_name = unfinished_of_keys.trigger_name
                and in_order.usable_key = unfinished_of_keys.document_key
        left join unfinished_of_triggers
            on
                in_order.asks_in_order
                and in_order.trigger_name = unfinished_of_triggers.trigger_name

    )

    select
        * except (age, usable_key, becomes_unfinished, alone, first_unfinished),
        if(
            needs_answer and asks_in_order and first_unfinished < age,
            first_unfinished.delivery_id,
            null
        ) as waits_for_service_of
        {%- if whom_to_ask %},
        -- without a key a delivery comes behind all earlier ones that are still to be asked about
        min(
            if(
                needs_answer
                and usable_key is not null
                and not coalesce(asks_in_order and first_unfinished < age, false),
                age,
                null
            )
        ) over (partition by trigger_name, alone) < age
        and asks_in_order
        and usable_key is null as is_asked_later
        {%- endif %}
    from with_unfinished
    {%- else %}

    select
        *,
        cast(null as string) as waits_for_service_of
    from with_status
    {%- endif %}
{%- endmacro %}
