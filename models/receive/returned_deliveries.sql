{{ config(materialized='ephemeral') }}
-- depends_on: {{ ref('checked_deliveries') }}
{%- set facts = queue_facts() %}
with

edited as (

    {{ edited_documents() | indent(4) }}

),

{% if facts.has_repeated -%}
    unconsumed as (

        select
            landed_file as new_file,
            landed_position as new_position
        from {{ landed_before('deliveries', until='unconsumed') }}

    ),

    -- a returning delivery was consumed by an earlier run: an unconsumed row of the same id counts
    -- only if the consumed one is gone
    landed as (

        select
            deliveries.* except (landing_rank),
            if(unconsumed.new_file is null, deliveries.landing_rank, 3) as landing_rank
        from {{ accepted_deliveries('landed') }} as deliveries
        left join unconsumed
            on
                deliveries.landed_file = unconsumed.new_file
                and deliveries.landed_position = unconsumed.new_position

    ),
{%- else -%}
    landed as (

        select * from {{ accepted_deliveries('landed') }}

    ),
{%- endif %}

-- a recovery or a resubmission keeps the key of its delivery, whatever the trigger's key is today,
-- and a resubmission with its own document needs no landed row
decided_before as (

    select
        delivery_id,
        trigger_name,
        document_type,
        rule_id not in {{ rules_where('eligible', 'false') }} as guaranteed,
        struct(document_key, key_source) as decided_key
    from {{ last_published('document_status') }}
    where {{ on_days('received_at', facts.returning_days) if facts.has_decided else 'false' }}

),

-- each delivery is here with its landed row and once without, which counts if the row is gone
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
        null as document_type,
        null as destination,
        null as guaranteed,
        null as uuid,
        null as track_id,
        null as event_id,
        null as errors_to,
        null as document,
        4 as landing_rank,
        null as landed_file,
        null as landed_position
    from {{ ref('returning_this_run') }} as returning_this_run

),

returning as (

    select
        with_landed_row.* except (
            document_type, guaranteed, document, landed_at, first_landed_at
        ),
        coalesce(with_landed_row.first_landed_at, with_landed_row.landed_at) as landed_at,
        coalesce(with_landed_row.document_type, decided_before.document_type) as document_type,
        coalesce(with_landed_row.guaranteed, decided_before.guaranteed) as guaranteed,
        coalesce(edited.document, with_landed_row.document) as document,
        decided_before.decided_key,
        cast(null as string) as left_out,
        cast(null as string) as rejected_because,
        with_landed_row.landing_rank = 4
        and (edited.document is null or decided_before.guaranteed is null) as is_gone,
        row_number() over (
            partition by with_landed_row.delivery_id, with_landed_row.trigger_name
            order by {{ order_of_landing('with_landed_row') }}
        ) as arrival
    from with_landed_row
    left join edited on with_landed_row.resubmission_id = edited.resubmission_id
    left join decided_before
        on
            with_landed_row.origin != 'LANDED'
            and with_landed_row.landed_delivery_id = decided_before.delivery_id
            and with_landed_row.trigger_name = decided_before.trigger_name

),

final as (

    select * except (arrival)
    from returning
    where arrival = 1

)

select * from final
