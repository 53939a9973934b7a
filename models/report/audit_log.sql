-- depends_on: {{ ref('published_runs') }}
with

in_doubt as (

    select
        *,
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id
    from {{ ref('decided_deliveries') }}
    where status in {{ rules_where('audit_msg', 'true', called='status') }}

),

with_document as (

    {{ with_document('in_doubt', ['transport'], until='now') | indent(4) }}

),

in_doubt_of_messages as (

    select
        'IN_DOUBT' as kind,
        with_document.delivery_id as audit_id,
        with_document.trigger_name,
        with_document.delivery_id,
        with_document.document_type,
        with_document.document_key,
        with_document.transport,
        with_document.rule_in_words as cause,
        with_document.document,
        with_document.received_at,
        with_document.decided_at as logged_at,
        try_element_at(
            filter(resubmissions.resubmitted, r -> r.run_number > runs.run_number), 1
        ).happened_at as resubmitted_at,
        with_document.run_id
    from with_document
    inner join {{ ref('published_runs') }} as runs on with_document.run_id = runs.run_id
    -- keep documents whose transport was removed from the seed, or whose landed row is gone
    left join {{ typed_seed('transports') }} as transports
        on with_document.transport = transports.transport
    left join {{ ref('trigger_settings') }} as settings
        on with_document.trigger_name = settings.trigger_name
    left join {{ ref('resubmissions_by_document') }} as resubmissions
        on
            with_document.landed_delivery_id = resubmissions.landed_delivery_id
            and with_document.trigger_name = resubmissions.trigger_name
    where coalesce(transports.api, settings.api, 'MSG') = 'MSG'

),

resubmitted_landings as (

    select
        delivery_id as rejection_id,
        min(happened_at) as resubmitted_at
    from {{ ref('journal_entries') }}
    where event = 'RESUBMITTED'
    group by delivery_id

),

failed as (

    select
        'FAILED' as kind,
        rejected.rejection_id as audit_id,
        cast(null as string) as trigger_name,
        rejected.delivery_id,
        cast(null as string) as document_type,
        cast(null as string) as document_key,
        cast(null as string) as transport,
        concat_ws(': ', rejected.reason, rejected.message) as cause,
        rejected.raw_text as document,
        cast(null as timestamp) as received_at,
        rejected.rejected_at as logged_at,
        resubmitted_landings.resubmitted_at,
        rejected.run_id
    from {{ ref('rejected_deliveries') }} as rejected
    left join resubmitted_landings on rejected.rejection_id = resubmitted_landings.rejection_id
    -- a REPEATED row has landed before
    where rejected.table_name = 'deliveries' and rejected.reason != 'REPEATED'

),

final as (

    select * from in_doubt_of_messages
    union all
    select * from failed

)

select * from final
