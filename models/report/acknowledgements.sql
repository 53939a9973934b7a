-- depends_on: {{ ref('published_runs') }}
with

-- without deliveries that the transport does not deliver again: it awaits no acknowledgement
statuses as (

    select * from {{ ref('document_status') }}
    where
        status in {{ rules_where('acknowledge', 'true', called='status') }}
        and rule_id not in {{ rules_where('eligible', 'false') }}
        and decided_by != 'OPERATOR'

),

ended as (

    select
        delivery_id,
        trigger_name,
        event,
        happened_at,
        run_id
    from {{ ref('journal_entries') }}
    where event in ('SUCCESS', 'ERROR', 'RETRIES_EXHAUSTED')

),

with_end as (

    select
        statuses.*,
        ended.happened_at,
        ended.run_id as ended_in_run_id,
        case
            when statuses.status in ('DUPLICATE', 'IN_DOUBT') then statuses.status
            when statuses.condition_name is null then 'UNMATCHED'
            when statuses.service is null then 'COMPLETED'
            else ended.event
        end as acknowledged_for
    from statuses
    left join ended
        on
            statuses.service is not null
            and statuses.delivery_id = ended.delivery_id
            and statuses.trigger_name = ended.trigger_name

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id,
        document_key,

        -- why
        status,
        acknowledged_for,
        case acknowledged_for
            when 'DUPLICATE' then 'discarded: the trigger has processed a copy of it'
            when 'IN_DOUBT' then 'not processed: a person decides'
            when 'UNMATCHED' then 'discarded: it matches no condition'
            when 'COMPLETED' then 'its condition has no service: being decided completes it'
            when 'SUCCESS' then 'its service has ended well'
            when 'ERROR' then 'rejected: its service has ended in error'
            when 'RETRIES_EXHAUSTED' then 'rejected: the last attempt of its service has failed'
        end as acknowledged_for_in_words,

        -- times
        received_at,
        coalesce(happened_at, decided_at) as acknowledged_at,
        coalesce(ended_in_run_id, run_id) as run_id
    from with_end
    where acknowledged_for is not null

)

select * from final
