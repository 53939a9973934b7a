{{ config(materialized='ephemeral') }}
{%- set can_be_resubmitted = "'IN_DOUBT', 'ERROR', 'RETRIES_EXHAUSTED', 'LOST'" -%}
with

requests as (

    select requests.*
    from {{ ref('stg_resubmissions') }} as requests
    left anti join {{ ref('landing_requests') }} as of_landings
        on
            requests.resubmission_id = of_landings.resubmission_id
            and requests.delivery_id = of_landings.resubmitted_delivery_id
            and requests.trigger_name <=> of_landings.trigger_name

),

documents as (

    select * from {{ ref('requested_documents') }}

),

edited as (

    {{ edited_documents() | indent(4) }}

),

latest as (

    select
        line_id,
        trigger_name,
        max_by(delivery_id, decided_by_run) as delivery_id,
        max_by(outcome, decided_by_run) as outcome,
        max(recoveries) as recoveries
    from documents
    group by line_id, trigger_name

),

still_waiting as (

    select distinct
        {{ landed_delivery_id('delivery_id') }} as line_id,
        trigger_name
    from {{ last_published('waiting_deliveries') }}
    where origin != 'LANDED'

),

with_landed_row as (

    select distinct
        deliveries.delivery_id,
        deliveries.received_at
    from {{ accepted_deliveries('landed') }} as deliveries
    left semi join documents
        on
            deliveries.delivery_id = {{ landed_delivery_id('documents.delivery_id') }}
            and deliveries.received_at = documents.landed_received_at

),

earlier as (

    select
        event,
        delivery_id,
        trigger_name,
        reference_id
    from {{ last_published('journal_entries') }}
    where event in ('RESUBMITTED', 'REFUSED')

),

earlier_of_line as (

    select
        trigger_name,
        {{ landed_delivery_id('delivery_id') }} as line_id,
        count(*) as resubmissions
    from earlier
    where event = 'RESUBMITTED'
    group by trigger_name, {{ landed_delivery_id('delivery_id') }}

),

answered as (

    select
        reference_id,
        collect_set(struct(delivery_id, trigger_name)) as requests
    from earlier
    group by reference_id

),

known_triggers as (

    select trigger_name from {{ ref('triggers_this_run') }}
    where not is_retired

),

judged as (

    select
        requests.*,
        targets.outcome,
        targets.landed_received_at,
        targets.redelivery_count,
        latest.recoveries,
        {{ landed_delivery_id('requests.delivery_id') }} as landed_delivery_id,
        -- a delivery that was resubmitted with an edited document keeps that document
        if(
            requests.document is null and edited.document is not null,
            edited.resubmission_id,
            requests.resubmission_id
        ) as document_given_by,
        coalesce(earlier_of_line.resubmissions, 0) as earlier_resubmissions,
        targets.settled_by_delivery_id,
        case
            when requests.resubmission_id is null then 'WITHOUT_ID'
            when
                exists(
                    answered.requests,
                    r -> r.delivery_id <=> requests.delivery_id
                    -- that of a rejected row has no trigger
                    and coalesce(r.trigger_name = requests.trigger_name, true)
                )
                then 'REPEATED'
            when
                answered.requests is not null
                or struct(requests.delivery_id, requests.trigger_name) != first_of_id.edited_for
                then 'ID_TAKEN'
            when targets.delivery_id is null then 'NO_DECISION'
            when known_triggers.trigger_name is null then 'UNKNOWN_TRIGGER'
            when targets.outcome not in ({{ can_be_resubmitted }}) then targets.outcome
            when
                still_waiting.line_id is not null
                or latest.outcome not in ({{ can_be_resubmitted }})
                then 'RESUBMITTED'
            when
                with_landed_row.delivery_id is null
                and coalesce(requests.document, edited.document) is null
                then 'LANDED_ROW_GONE'
            when targets.settled_by_delivery_id is not null and not coalesce(requests.force, false)
                then 'SETTLED'
        end as refused_for
    from requests
    left join documents as targets
        on
            requests.delivery_id = targets.delivery_id
            and requests.trigger_name = targets.trigger_name
    left join edited on targets.resubmission_id = edited.resubmission_id
    left join known_triggers on requests.trigger_name = known_triggers.trigger_name
    left join latest
        on
            targets.line_id = latest.line_id
            and targets.trigger_name = latest.trigger_name
    left join still_waiting
        on
            targets.line_id = still_waiting.line_id
            and targets.trigger_name = still_waiting.trigger_name
    left join with_landed_row
        on
            {{ landed_delivery_id('requests.delivery_id') }} = with_landed_row.delivery_id
            and targets.landed_received_at = with_landed_row.received_at
    left join answered on requests.resubmission_id = answered.reference_id
    left join edited as first_of_id on requests.resubmission_id = first_of_id.resubmission_id
    left join earlier_of_line
        on
            {{ landed_delivery_id('requests.delivery_id') }} = earlier_of_line.line_id
            and requests.trigger_name = earlier_of_line.trigger_name

),

numbered as (

    select
        *,
        row_number() over (
            partition by landed_delivery_id, trigger_name, refused_for is null
            order by requested_at, resubmission_id
        ) as request_number
    from judged

),

final as (

    select
        resubmission_id,
        delivery_id as resubmitted_delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        coalesce(requested_at, {{ run_clock() }}) as received_at,
        redelivery_count,
        recoveries,
        requested_by,
        reason,
        document_given_by,
        outcome,
        false as is_landing,
        refused_for is null and request_number = 1 as is_accepted,
        coalesce(refused_for, if(request_number > 1, 'RESUBMITTED', null)) as refused_for,
        settled_by_delivery_id,
        concat(landed_delivery_id, '/resubmission-', earlier_resubmissions + 1) as delivery_id
    from numbered

)

select * from final
