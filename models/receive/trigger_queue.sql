{%- set facts = queue_facts() -%}
{%- set landed_keys = keys_by_expression(facts.key_expressions) -%}
{#- a transport may have left the seed while its deliveries wait -#}
{%- set api = 'coalesce(transports.transport_api, current_triggers.api)' -%}
with

current_triggers as (

    select * from {{ ref('current_triggers') }}

),

conditions as (

    select * from {{ conditions_of_seed() }}

),

transports as (

    select
        * except (api),
        api as transport_api
    from {{ transports_of_seed() }}

),

-- ---- what has landed since the last run, checked against the contract

landed as (

    select
        stg_deliveries.*,
        transports.transport_api
    from (
        select
            *,
            {{ landed_keys | indent(12) }} as landed_keys
        from {{ ref('stg_deliveries') }}
    ) as stg_deliveries
    left join transports on stg_deliveries.transport = transports.transport

),

checked as (

    select
        *,
        {{ contract_breach('transport_api is not null') }} as breach
    from landed

),

{% if facts.has_repeated -%}
    landed_earlier as (

        select
            earlier.delivery_id,
            min_by(
                {{ delivery_content() }},
                struct({{ order_of_landing('earlier') }})
            ) as content
        from {{ accepted_deliveries('consumed') }} as earlier
        left semi join landed on earlier.delivery_id = landed.delivery_id
        where earlier.landing_rank < 2
        group by earlier.delivery_id

    ),

    -- also where its landed row has been removed since
    taken_earlier as (

        select distinct
            delivery_id,
            to_date(received_at) as received_on
        from {{ taken_deliveries(facts.landed_days) }}

    ),

    with_content as (

        select
            *,
            {{ delivery_content() }} as content
        from {{ in_order_of_commits('checked', 'deliveries', 'unconsumed') }}

    ),

    ranked as (

        select
            *,
            row_number() over first_landed as arrival,
            first(content) over first_landed as first_content
        from with_content
        window first_landed as (
            partition by delivery_id, breach is null
            order by landed_commit, landed_at, landed_file, landed_position
        )

    ),

    judged as (

        select
            ranked.* except (arrival, first_content, content, breach, landed_commit),
            case
                when ranked.breach is not null then ranked.breach
                when landed_earlier.content is not null or ranked.arrival > 1
                    then if(
                        coalesce(landed_earlier.content, ranked.first_content) = ranked.content,
                        'REPEATED',
                        'CONFLICTING'
                    )
                when taken_earlier.delivery_id is not null then 'REPEATED'
            end as rejected_because
        from ranked
        left join landed_earlier on ranked.delivery_id = landed_earlier.delivery_id
        left join taken_earlier
            on
                ranked.delivery_id = taken_earlier.delivery_id
                and to_date(ranked.received_at) = taken_earlier.received_on

    ),
{%- else -%}
judged as (

    select
        * except (breach),
        breach as rejected_because
    from checked

),
{%- endif %}

-- ---- where it goes: to each trigger that subscribes to its type, or to its destination

subscriptions as (

    select distinct
        conditions.document_type as subscribed_type,
        current_triggers.api as subscribed_api,
        conditions.trigger_name as subscriber
    from conditions
    inner join current_triggers on conditions.trigger_name = current_triggers.trigger_name
    where current_triggers.is_in_seed

),

subscribed as (

    select
        judged.*,
        subscriptions.subscriber as trigger_name
    from judged
    left join subscriptions
        on
            judged.rejected_because is null
            and judged.destination is null
            and judged.document_type = subscriptions.subscribed_type
            and judged.transport_api = subscriptions.subscribed_api

),

arrived as (

    select
        subscribed.* except (trigger_name),
        coalesce(subscribed.trigger_name, destinations.trigger_name) as trigger_name,
        case
            when subscribed.rejected_because is not null then 'REJECTED'
            when coalesce(subscribed.trigger_name, destinations.trigger_name) is null
                then 'UNROUTED'
            when subscribed.received_at < coalesce(all_triggers.takes_from, subscribed.received_at)
                then 'NOT_TAKEN'
        end as left_out,
        subscribed.delivery_id as landed_delivery_id,
        subscribed.received_at as landed_received_at,
        'LANDED' as origin,
        0 as recoveries,
        cast(null as string) as resubmission_id,
        false as examined,
        cast(null as timestamp) as waiting_since,
        false as had_waited,
        cast(null as string) as was_waiting_for
    from subscribed
    left join current_triggers as destinations
        on
            subscribed.rejected_because is null
            and subscribed.destination = destinations.trigger_name
    left join current_triggers as all_triggers
        on coalesce(subscribed.trigger_name, destinations.trigger_name) = all_triggers.trigger_name

),

{% if facts.takes_earlier -%}
-- ---- what earlier runs have consumed, for a trigger that was added with a start_from

    consumed_deliveries as (

        select
            deliveries.* except (arrival),
            transports.transport_api
        from (
            select
                *,
                {{ landed_keys | indent(16) }} as landed_keys,
                row_number() over (
                    partition by delivery_id
                    order by {{ order_of_landing('consumed') }}
                ) as arrival
            from {{ accepted_deliveries('consumed') }} as consumed
            where landing_rank < 2
        ) as deliveries
        left join transports on deliveries.transport = transports.transport
        where deliveries.arrival = 1

    ),

    taken_late as (

        select
            consumed_deliveries.*,
            cast(null as string) as rejected_because,
            current_triggers.trigger_name,
            cast(null as string) as left_out,
            consumed_deliveries.delivery_id as landed_delivery_id,
            consumed_deliveries.received_at as landed_received_at,
            'LANDED' as origin,
            0 as recoveries,
            cast(null as string) as resubmission_id,
            false as examined,
            cast(null as timestamp) as waiting_since,
            false as had_waited,
            cast(null as string) as was_waiting_for
        from consumed_deliveries
        inner join current_triggers
            on
                current_triggers.takes_earlier_landings
                and consumed_deliveries.received_at >= current_triggers.takes_from
        left join subscriptions
            on
                current_triggers.trigger_name = subscriptions.subscriber
                and consumed_deliveries.document_type = subscriptions.subscribed_type
                and consumed_deliveries.transport_api = subscriptions.subscribed_api
        where
            consumed_deliveries.destination = current_triggers.trigger_name
            or (
                consumed_deliveries.destination is null and subscriptions.subscriber is not null
            )

    ),
{%- endif %}

{% if facts.returning_days != [] -%}
-- ---- what comes again

    edited as (

        {{ edited_documents() | indent(8) }}

    ),

    {% if facts.has_resubmissions -%}
        -- a resubmission that brings its document can do without the landed row
        decided_before as (

            select
                delivery_id,
                trigger_name,
                document_type,
                rule_id not in {{ rules_where('eligible', 'false') }} as guaranteed,
                if(key_source = 'UUID', document_key, null) as uuid,
                if(key_source = 'TRACK_ID', document_key, null) as track_id,
                if(key_source = 'EVENT_ID', document_key, null) as event_id,
                if(key_source = 'EXPRESSION', map(trigger_name, document_key), null) as landed_keys
            from {{ last_published('document_status') }}
            where {{ on_days('received_at', facts.returning_days) }}

        ),
    {%- endif %}

    -- each once with its landed row, and once without, which counts where the row is gone
    with_landed_row as (

        {% set landed_columns = [
            'landed_at', 'transport', 'document_type', 'destination', 'guaranteed', 'uuid',
            'track_id', 'event_id', 'errors_to', 'document', 'landed_keys',
        ] -%}
        select
            returning_deliveries.* except (landed_at),
            returning_deliveries.landed_at as first_landed_at,
            {% for column in landed_columns -%}
                deliveries.{{ column }},
            {% endfor -%}
            deliveries.landing_rank,
            deliveries.landed_file,
            deliveries.landed_position
        from (
            select
                *,
                {{ landed_keys | indent(16) }} as landed_keys
            from {{ accepted_deliveries('landed') }}
        ) as deliveries
        inner join {{ ref('returning_deliveries') }} as returning_deliveries
            on
                deliveries.delivery_id = returning_deliveries.landed_delivery_id
                and deliveries.received_at = returning_deliveries.landed_received_at
        where {{ on_days('deliveries.received_at', facts.returning_days) }}
        union all
        select
            returning_deliveries.* except (landed_at),
            returning_deliveries.landed_at as first_landed_at,
            {% for column in landed_columns -%}
                {{ 'decided_before.' ~ column
                    if facts.has_resubmissions and column in
                        ['document_type', 'guaranteed', 'uuid', 'track_id', 'event_id',
                        'landed_keys']
                    else 'null as ' ~ column }},
            {% endfor -%}
            3 as landing_rank,
            null as landed_file,
            null as landed_position
        from {{ ref('returning_deliveries') }} as returning_deliveries
        {% if facts.has_resubmissions -%}
            left join decided_before
                on
                    returning_deliveries.resubmission_id is not null
                    and returning_deliveries.landed_delivery_id = decided_before.delivery_id
                    and returning_deliveries.trigger_name = decided_before.trigger_name
        {%- endif %}

    ),

    returning as (

        select
            with_landed_row.* except (document, landed_at, first_landed_at),
            coalesce(with_landed_row.first_landed_at, with_landed_row.landed_at) as landed_at,
            coalesce(edited.document, with_landed_row.document) as document,
            with_landed_row.landing_rank = 3
            and (edited.document is null or with_landed_row.guaranteed is null) as is_gone,
            row_number() over (
                partition by with_landed_row.delivery_id, with_landed_row.trigger_name
                order by {{ order_of_landing('with_landed_row') }}
            ) as arrival
        from with_landed_row
        left join edited on with_landed_row.resubmission_id = edited.resubmission_id

    ),
{%- endif %}

in_queue as (

    {% set delivery_columns = [
        'delivery_id', 'trigger_name', 'landed_delivery_id', 'landed_received_at', 'received_at',
        'landed_at', 'transport', 'document_type', 'destination', 'guaranteed', 'uuid',
        'track_id', 'event_id', 'redelivery_count', 'errors_to', 'document', 'origin',
        'recoveries', 'resubmission_id', 'examined', 'waiting_since', 'had_waited',
        'was_waiting_for', 'landed_keys',
    ] | join(', ') -%}
    select
        {{ delivery_columns }},
        landed_file,
        landed_position,
        left_out,
        rejected_because,
        false as is_gone
    from arrived
    {% if facts.takes_earlier -%}
        union all
        select
            {{ delivery_columns }},
            landed_file,
            landed_position,
            left_out,
            rejected_because,
            false as is_gone
        from taken_late
    {% endif -%}
    {% if facts.returning_days != [] -%}
        union all
        select
            {{ delivery_columns }},
            landed_file,
            landed_position,
            null as left_out,
            null as rejected_because,
            is_gone
        from returning
        where arrival = 1
    {%- endif %}

),

{% if facts.has_holds -%}
-- ---- what an operator has set aside

    held as (

        select
            delivery_id,
            trigger_name
        from {{ landed_before('delivery_holds', until='landed') }}
        group by delivery_id, trigger_name
        having max_by(command, struct(issued_at, hold_id)) = 'HOLD'

    ),
{%- endif %}

-- ---- the condition, and the facts that detection asks for; the document stays behind

matched as (

    select
        * except (document),
        if(left_out is null, {{ first_matching_condition() }}, null) as condition_position,
        if(left_out is null, sha2(document, 256), null) as document_hash,
        if(left_out = 'REJECTED', {{ delivery_as_json() }}, null) as raw_text
    from in_queue

),

with_settings as (

    select
        matched.*,
        conditions.condition_name,
        conditions.service,
        current_triggers.trigger_id,
        current_triggers.takes_documents,
        {{ 'held.delivery_id is not null' if facts.has_holds else 'false' }} as is_held,
        current_triggers.enabled and current_triggers.is_in_seed as is_enabled,
        current_triggers.queue_capacity,
        current_triggers.processing_mode,
        current_triggers.detect_duplicates,
        current_triggers.use_history,
        current_triggers.history_time_to_live_ms,
        current_triggers.resolver,
        current_triggers.suspends_on_error,
        current_triggers.history_removed_until,
        transports.transport_api,
        matched.guaranteed
        and (
            {{ api }} != 'JMS'
            or current_triggers.acknowledgement_mode in ('CLIENT_ACKNOWLEDGE', 'TRANSACTED')
        ) as is_eligible,
        case
            when not coalesce(transports.counts_deliveries, false) then 'UNDEFINED'
            when matched.redelivery_count is null or matched.redelivery_count < 0 then 'UNDEFINED'
            when matched.redelivery_count <= transports.first_delivery_count then 'FIRST'
            else 'REDELIVERED'
        end as redelivery,
        -- where the trigger has an expression, what that gives and nothing else
        if(
            current_triggers.key is null,
            {{ document_key('matched', api) | indent(12) }},
            nullif(try_element_at(matched.landed_keys, matched.trigger_name), '')
        ) as document_key,
        if(
            current_triggers.key is null,
            {{ key_source('matched', api) | indent(12) }},
            if(
                try_element_at(matched.landed_keys, matched.trigger_name) != '', 'EXPRESSION', null
            )
        ) as key_source
    from matched
    left join transports on matched.transport = transports.transport
    left join current_triggers on matched.trigger_name = current_triggers.trigger_name
    {% if facts.has_holds -%}
        left join held
            on
                matched.delivery_id = held.delivery_id
                and matched.trigger_name = held.trigger_name
    {% endif -%}
    left join conditions
        on
            matched.trigger_name = conditions.trigger_name
            and matched.condition_position = conditions.position

),

keyed as (

    select
        *,
        case
            when document_key is null then 'MISSING'
            when char_length(document_key) > 96 then 'TOO_LONG'
            else 'USABLE'
        end as key_state
    from with_settings

),

placed as (

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
            landed_keys
        ),
        -- a row that does not tell when it landed has landed now
        if(left_out is null, coalesce(landed_at, {{ run_clock() }}), landed_at) as landed_at,
        case
            when left_out is not null then left_out
            when not takes_documents or is_held or is_gone then 'WAITING'
            when queue_capacity > 0 and not examined and queue_number > queue_capacity
                then 'WAITING'
            else 'QUEUED'
        end as place,
        case
            when left_out is not null then null
            when not is_enabled then 'DISABLED'
            when not takes_documents then 'SUSPENDED'
            when is_held then 'HELD'
            when is_gone then 'LANDED_ROW_GONE'
            when queue_capacity > 0 and not examined and queue_number > queue_capacity
                then 'QUEUE_CAPACITY'
        end as waiting_reason,
        if(uses_history, {{ key_hash('trigger_id', 'document_key') }}, null) as key_hash,
        if(uses_history, {{ key_hash('trigger_id', 'document_key', 2) }}, null) as key_check,
        '{{ invocation_id }}' as for_run_id
    from placed

)

select * from final
