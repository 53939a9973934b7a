{{ config(materialized='ephemeral') }}
-- depends_on: {{ ref('checked_deliveries') }}
{%- set facts = queue_facts() -%}
{%- set landed_keys = keys_by_expression(facts.key_expressions) %}
with

edited as (

    {{ edited_documents() | indent(4) }}

),

landed as (

    select
        *,
        {{ landed_keys | indent(8) }} as landed_keys
    from {{ accepted_deliveries('landed') }}

),

-- a resubmission with its own document needs no landed row
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
    where {{ on_days('received_at', facts.returning_days) if facts.has_resubmissions else 'false' }}

),

-- each delivery comes with its landed row and without it; the second counts if the row is gone
with_landed_row as (

    select
        returning_this_run.* except (landed_at),
        returning_this_run.landed_at as first_landed_at,
        landed.landed_at,
        landed.transport,
        landed.document_type,
        landed.destination,
        landed.guaranteed,
        landed.uuid,
        landed.track_id,
        landed.event_id,
        landed.errors_to,
        landed.document,
        landed.landed_keys,
        landed.landing_rank,
        landed.landed_file,
        landed.landed_position
    from landed
    inner join {{ ref('returning_this_run') }} as returning_this_run
        on
            landed.delivery_id = returning_this_run.landed_delivery_id
            and landed.received_at = returning_this_run.landed_received_at
    where {{ on_days('landed.received_at', facts.returning_days) }}
    union all
    select
        returning_this_run.* except (landed_at),
        returning_this_run.landed_at as first_landed_at,
        null as landed_at,
        null as transport,
        decided_before.document_type,
        null as destination,
        decided_before.guaranteed,
        decided_before.uuid,
        decided_before.track_id,
        decided_before.event_id,
        null as errors_to,
        null as document,
        decided_before.landed_keys,
        3 as landing_rank,
        null as landed_file,
        null as landed_position
    from {{ ref('returning_this_run') }} as returning_this_run
    left join decided_before
        on
            returning_this_run.resubmission_id is not null
            and returning_this_run.landed_delivery_id = decided_before.delivery_id
            and returning_this_run.trigger_name = decided_before.trigger_name

),

returning as (

    select
        with_landed_row.* except (document, landed_at, first_landed_at),
        coalesce(with_landed_row.first_landed_at, with_landed_row.landed_at) as landed_at,
        coalesce(edited.document, with_landed_row.document) as document,
        cast(null as string) as left_out,
        cast(null as string) as rejected_because,
        with_landed_row.landing_rank = 3
        and (edited.document is null or with_landed_row.guaranteed is null) as is_gone,
        row_number() over (
            partition by with_landed_row.delivery_id, with_landed_row.trigger_name
            order by {{ order_of_landing('with_landed_row') }}
        ) as arrival
    from with_landed_row
    left join edited on with_landed_row.resubmission_id = edited.resubmission_id

),

final as (

    select * except (arrival)
    from returning
    where arrival = 1

)

select * from final
