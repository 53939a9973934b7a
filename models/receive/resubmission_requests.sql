{%- set run = current_run() -%}
{%- set can_be_resubmitted = "'IN_DOUBT', 'ERROR', 'RETRIES_EXHAUSTED', 'LOST'" -%}
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

-- ---- what came of a landed delivery in a trigger: itself, its recoveries, its resubmissions; each
-- ---- is decided by a later run than the one before it

-- a request is rare; where there is none, nothing of the statuses is read
members as (

    select
        statuses.*,
        {{ landed_delivery_id('statuses.delivery_id') }} as line_id,
        runs.run_number as decided_by_run
    from {{ last_published('document_status') }} as statuses
    inner join {{ last_published('published_runs') }} as runs on statuses.run_id = runs.run_id
    left semi join requests
        on
            {{ landed_delivery_id('statuses.delivery_id') }}
            = {{ landed_delivery_id('requests.delivery_id') }}
            and statuses.trigger_name = requests.trigger_name
    {% if run -%}
    where {{ run.has_landed('resubmissions') }}
    {%- endif %}

),

ended as (

    select
        journal.delivery_id,
        journal.trigger_name,
        journal.event as ended_by,
        runs.run_number as heard_by_run
    from {{ last_published('journal_entries') }} as journal
    inner join {{ last_published('published_runs') }} as runs on journal.run_id = runs.run_id
    where
        journal.event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED', 'INTERRUPTED', 'LOST')
    {% if run -%}
        and {{ run.has_landed('resubmissions') }}
        {%- endif %}
    union all
    -- a later run than any that is published
    select
        delivery_id,
        trigger_name,
        coalesce(ended_by, 'UNFINISHED') as ended_by,
        {{ run.number if run else 'cast(null as bigint)' }} as heard_by_run
    from {{ ref('documents_in_execution') }}

),

with_outcome as (

    select
        members.*,
        case
            when members.status in ('IN_DOUBT', 'DUPLICATE') then members.status
            when ended.ended_by is not null then ended.ended_by
            when members.service is null then 'SUCCESS'
            else 'UNKNOWN'
        end as outcome
    from members
    left join ended
        on
            members.delivery_id = ended.delivery_id
            and members.trigger_name = ended.trigger_name

),

latest as (

    select
        line_id,
        trigger_name,
        max_by(delivery_id, decided_by_run) as delivery_id,
        max_by(outcome, decided_by_run) as outcome,
        max(recoveries) as recoveries
    from with_outcome
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
    left semi join members
        on
            deliveries.delivery_id = {{ landed_delivery_id('members.delivery_id') }}
            and deliveries.received_at = members.landed_received_at

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

earlier_of_line as (

    select
        trigger_name,
        {{ landed_delivery_id('delivery_id') }} as line_id,
        count(*) as resubmissions
    from earlier
    where event = 'RESUBMITTED'
    group by trigger_name, {{ landed_delivery_id('delivery_id') }}

),

same_request as (

    select distinct reference_id from earlier

),

-- ---- a doubt is settled where a document of its key has succeeded since

settled as (

    select
        doubts.delivery_id,
        doubts.trigger_name,
        min_by(
            others.delivery_id, struct(ended.heard_by_run, others.delivery_id)
        ) as settled_by_delivery_id
    from with_outcome as doubts
    inner join {{ last_published('document_status') }} as others
        on
            doubts.trigger_name = others.trigger_name
            and doubts.document_key = others.document_key
    inner join ended
        on
            others.delivery_id = ended.delivery_id
            and others.trigger_name = ended.trigger_name
            and doubts.decided_by_run < ended.heard_by_run
    where
        doubts.outcome = 'IN_DOUBT'
        and ended.ended_by = 'SUCCESS'
    {% if run -%}
        and {{ run.has_landed('resubmissions') }}
        {%- endif %}
    group by doubts.delivery_id, doubts.trigger_name

),

judged as (

    select
        requests.*,
        targets.status,
        targets.outcome,
        targets.landed_received_at,
        targets.redelivery_count,
        latest.recoveries,
        {{ landed_delivery_id('requests.delivery_id') }} as landed_delivery_id,
        coalesce(earlier_of_line.resubmissions, 0) as earlier_resubmissions,
        settled.settled_by_delivery_id,
        case
            when same_request.reference_id is not null then 'REPEATED'
            when targets.delivery_id is null then 'NO_DECISION'
            when targets.outcome not in ({{ can_be_resubmitted }}) then targets.outcome
            when
                still_waiting.line_id is not null
                or latest.outcome not in ({{ can_be_resubmitted }})
                then 'RESUBMITTED'
            when with_landed_row.delivery_id is null and requests.document is null
                then 'LANDED_ROW_GONE'
            when settled.delivery_id is not null and not coalesce(requests.force, false)
                then 'SETTLED'
        end as refused_for
    from requests
    left join with_outcome as targets
        on
            requests.delivery_id = targets.delivery_id
            and requests.trigger_name = targets.trigger_name
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
    left join same_request on requests.resubmission_id = same_request.reference_id
    left join settled
        on
            requests.delivery_id = settled.delivery_id
            and requests.trigger_name = settled.trigger_name
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
        outcome,
        false as is_landing,
        refused_for is null and request_number = 1 as is_accepted,
        coalesce(refused_for, if(request_number > 1, 'RESUBMITTED', null)) as refused_for,
        settled_by_delivery_id,
        concat(landed_delivery_id, '/resubmission-', earlier_resubmissions + 1) as delivery_id
    from numbered

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
        'REJECTED' as outcome,
        true as is_landing,
        landings.refused_for is null as is_accepted,
        landings.refused_for,
        cast(null as string) as settled_by_delivery_id,
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
