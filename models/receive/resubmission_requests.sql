{%- set run = adapter.exactly_once.run
    if execute and model.resource_type != 'unit_test' else none -%}
with

-- what becomes of a rejected landing is known since the run began: it has landed again
{% set landed_again = run.landed_again if run else [] -%}
landings as (

    {% for became in landed_again -%}
        select
            {{ sql_text(became.resubmission_id) }} as resubmission_id,
            {{ sql_text(became.delivery_id) }} as delivery_id,
            {{ sql_text(became.refused_for) }} as refused_for
        union all
    {% endfor -%}
    select
        cast(null as string) as resubmission_id,
        cast(null as string) as delivery_id,
        cast(null as string) as refused_for
    where false

),

requests as (

    select requests.*
    from {{ ref('stg_resubmissions') }} as requests
    left anti join landings on requests.resubmission_id = landings.resubmission_id
    {% if run -%}
    where {{ run.has_landed('resubmissions') }}
    {%- endif %}

),

targets as (

    -- a request is rare; where there is none, nothing of the statuses is read
    select statuses.*
    from {{ last_published('document_status') }} as statuses
    left semi join requests
        on
            statuses.delivery_id = requests.delivery_id
            and statuses.trigger_name = requests.trigger_name
    {% if run -%}
    where {{ run.has_landed('resubmissions') }}
    {%- endif %}

),

earlier as (

    select
        event,
        delivery_id,
        trigger_name,
        reference_id
    from {{ last_published('journal_entries') }}
    where
        event in ('RESUBMITTED', 'REFUSED')
    {% if run -%}
        and {{ run.has_landed('resubmissions') }}
        {%- endif %}

),

earlier_of_document as (

    select
        trigger_name,
        regexp_replace(delivery_id, '/(recovery|resubmission)-[0-9]+$', '') as landed_delivery_id,
        count(*) as resubmissions
    from earlier
    where event = 'RESUBMITTED'
    group by
        trigger_name,
        regexp_replace(delivery_id, '/(recovery|resubmission)-[0-9]+$', '')

),

same_request as (

    select distinct reference_id from earlier

),

done as (

    select distinct
        delivery_id,
        trigger_name
    from earlier
    where event = 'RESUBMITTED'

),

judged as (

    select
        requests.*,
        targets.status,
        targets.landed_received_at,
        targets.redelivery_count,
        targets.recoveries,
        regexp_replace(requests.delivery_id, '/(recovery|resubmission)-[0-9]+$', '')
            as landed_delivery_id,
        coalesce(earlier_of_document.resubmissions, 0) as earlier_resubmissions,
        row_number() over (
            partition by requests.delivery_id, requests.trigger_name
            order by requests.requested_at, requests.resubmission_id
        ) as request_number,
        case
            when same_request.reference_id is not null then 'REPEATED'
            when targets.delivery_id is null then 'NO_DECISION'
            when targets.status != 'IN_DOUBT' then targets.status
            when done.delivery_id is not null then 'RESUBMITTED'
        end as refused_for
    from requests
    left join targets
        on
            requests.delivery_id = targets.delivery_id
            and requests.trigger_name = targets.trigger_name
    left join same_request on requests.resubmission_id = same_request.reference_id
    left join done
        on
            requests.delivery_id = done.delivery_id
            and requests.trigger_name = done.trigger_name
    left join earlier_of_document
        on
            regexp_replace(requests.delivery_id, '/(recovery|resubmission)-[0-9]+$', '')
            = earlier_of_document.landed_delivery_id
            and requests.trigger_name = earlier_of_document.trigger_name

),

of_deliveries as (

    select
        resubmission_id,
        delivery_id as resubmitted_delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        requested_at as received_at,
        redelivery_count,
        recoveries,
        requested_by,
        reason,
        status,
        false as is_landing,
        refused_for is null and request_number = 1 as is_accepted,
        coalesce(refused_for, if(request_number > 1, 'RESUBMITTED', null)) as refused_for,
        concat(
            landed_delivery_id,
            '/resubmission-',
            earlier_resubmissions + row_number() over (
                partition by
                    landed_delivery_id, trigger_name, refused_for is null and request_number = 1
                order by requested_at, resubmission_id
            )
        ) as delivery_id
    from judged

),

of_landings as (

    select
        requests.resubmission_id,
        requests.delivery_id as resubmitted_delivery_id,
        requests.trigger_name,
        landings.delivery_id as landed_delivery_id,
        cast(null as timestamp) as landed_received_at,
        requests.requested_at as received_at,
        cast(null as int) as redelivery_count,
        0 as recoveries,
        requests.requested_by,
        requests.reason,
        'REJECTED' as status,
        true as is_landing,
        landings.refused_for is null as is_accepted,
        landings.refused_for,
        landings.delivery_id
    from {{ ref('stg_resubmissions') }} as requests
    inner join landings on requests.resubmission_id = landings.resubmission_id

),

final as (

    select * from of_deliveries
    union all
    select * from of_landings

)

select
    *,
    '{{ invocation_id }}' as for_run_id
from final
