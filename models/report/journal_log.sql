with

statuses as (

    select
        *,
        condition_name is null and {{ is_executed() }} as is_unmatched
    from {{ ref('decided_deliveries') }}

),

decided as (

    select
        decided_at as happened_at,
        if(is_unmatched, 'UNMATCHED', status) as event,
        trigger_name,
        delivery_id,
        document_key,
        document_type,
        cast(null as string) as reference_id,
        case
            when is_unmatched
                then 'it matches no condition of the trigger: acknowledged and discarded'
            when matched_delivery_id is null then rule_in_words
            else concat(rule_in_words, '; latest entry by delivery ', matched_delivery_id)
        end as message,
        run_id
    from statuses
    where
        status in {{ rules_where('journal', 'true', called='status') }}
        or is_unmatched

),

recorded as (

    select
        happened_at,
        event,
        trigger_name,
        delivery_id,
        cast(null as string) as document_key,
        document_type,
        reference_id,
        message,
        run_id
    from {{ ref('journal_entries') }}
    -- successes are in acknowledgements
    where event != 'SUCCESS'

),

final as (

    select * from decided
    union all
    select * from recorded

)

select * from final
