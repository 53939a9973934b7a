{{ config(materialized='ephemeral') }}
{%- set run = current_run() -%}
with

-- when the run began, it landed these rows again or refused to
landings as (

    {% for request in (run.landed_again if run else []) -%}
        select
            {{ sql_text(request.resubmission_id) }} as resubmission_id,
            {{ sql_text(request.rejection_id) }} as rejection_id,
            {{ sql_text(request.trigger_name) }} as trigger_name,
            {{ sql_text(request.delivery_id) }} as delivery_id,
            {{ sql_text(request.refused_for) }} as refused_for
        union all
    {% endfor -%}
    select
        cast(null as string) as resubmission_id,
        cast(null as string) as rejection_id,
        cast(null as string) as trigger_name,
        cast(null as string) as delivery_id,
        cast(null as string) as refused_for
    where false

),

final as (

    select
        requests.resubmission_id,
        requests.delivery_id as resubmitted_delivery_id,
        requests.trigger_name,
        landings.delivery_id as landed_delivery_id,
        cast(null as timestamp) as landed_received_at,
        coalesce(requests.requested_at, {{ run_clock() }}) as received_at,
        cast(null as int) as redelivery_count,
        0 as recoveries,
        requests.requested_by,
        requests.reason,
        requests.resubmission_id as document_given_by,
        'REJECTED' as outcome,
        true as is_landing,
        landings.refused_for is null as is_accepted,
        landings.refused_for,
        cast(null as string) as settled_by_delivery_id,
        landings.delivery_id
    from {{ ref('stg_resubmissions') }} as requests
    inner join landings
        on
            requests.resubmission_id = landings.resubmission_id
            and requests.delivery_id = landings.rejection_id
            and requests.trigger_name <=> landings.trigger_name

)

select * from final
