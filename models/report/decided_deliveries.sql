-- depends_on: {{ ref('published_runs') }}
with

statuses as (

    select * from {{ ref('document_status') }}

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        document_type,
        document_key,
        key_source,

        -- decision
        status,
        case status
            when 'NEW' then 'to be processed: the trigger has not processed it'
            when 'DUPLICATE' then 'discarded: the trigger has processed this document before'
            when 'IN_DOUBT'
                then 'not processed: nobody can tell whether this document was processed before'
            when 'NOT_CHECKED' then 'to be processed: duplicates of it are not looked for'
        end as status_in_words,
        decided_by,
        case decided_by
            when 'COUNT' then 'the redelivery count of its transport'
            when 'HISTORY' then 'the document history of its trigger'
            when 'RESOLVER' then 'the resolver of its trigger'
            when 'RESOLVER_ERROR' then 'the resolver of its trigger failed'
            when 'HISTORY_ERROR' then 'the document history could not answer'
            when 'ID' then 'it has no key that could be looked up'
            when 'OPERATOR' then 'an operator who resubmitted it'
            when 'MAX_RECOVERIES' then 'it was recovered too often'
            when 'NONE' then 'nothing: it is not checked'
        end as decided_by_in_words,
        rule_id,
        {{ rule_in_words('statuses') }} as rule_in_words,

        -- evidence
        redelivery,
        redelivery_count,
        recoveries,
        key_state,
        history_state,
        resolver_result,
        message,
        matched_delivery_id,
        condition_name,
        service,
        resubmission_id,
        document_hash,
        run_id,

        -- times
        received_at,
        landed_received_at,
        decided_at
    from statuses

)

select * from final
