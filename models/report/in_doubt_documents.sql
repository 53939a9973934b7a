with

statuses as (

    select * from {{ ref('document_statuses') }}
    where status = 'IN_DOUBT'

),

resubmissions as (

    select
        delivery_id,
        trigger_name,
        min(happened_at) as resubmitted_at
    from {{ ref('journal_entries') }}
    where event = 'RESUBMITTED'
    group by delivery_id, trigger_name

),

final as (

    select
        -- ids
        statuses.trigger_name,
        statuses.delivery_id,
        statuses.document_type,
        statuses.document_key,

        -- why
        statuses.decided_by,
        statuses.rule_id,
        statuses.rule_in_words as cause,
        statuses.matched_delivery_id,
        statuses.redelivery_count,

        -- times
        statuses.received_at,
        statuses.decided_at,
        resubmissions.resubmitted_at
    from statuses
    left join resubmissions
        on
            statuses.delivery_id = resubmissions.delivery_id
            and statuses.trigger_name = resubmissions.trigger_name

)

select * from final
