{{ config(materialized='ephemeral') }}
with

requests as (

    select * from {{ ref('resubmissions_this_run') }}
    where is_accepted or refused_for != 'REPEATED'

),

final as (

    select
        if(is_accepted, 'RESUBMITTED', 'REFUSED') as event,
        resubmitted_delivery_id as delivery_id,
        -- a rejected row has no trigger yet
        if(is_landing and is_accepted, null, trigger_name) as trigger_name,
        cast(null as string) as document_type,
        resubmission_id as reference_id,
        if(
            is_accepted,
            concat_ws(
                ': ',
                concat_ws(', requested by ', concat('comes as ', delivery_id), requested_by),
                reason
            ),
            case split_part(refused_for, ' ', 1)
                when 'WITHOUT_ID' then 'it has no resubmission_id: land it again with one'
                when 'ID_TAKEN'
                    then concat(
                        'its resubmission_id is that of a request for another delivery or ',
                        'trigger: land it again with one of its own'
                    )
                when 'NO_DECISION' then 'no decision is known for it'
                when 'UNKNOWN_TRIGGER'
                    then if(
                        is_landing,
                        concat('no trigger is named ', trigger_name),
                        'its trigger was retired: bring it back into seeds/triggers.csv first'
                    )
                when 'RESUBMITTED' then 'it was resubmitted before'
                when 'LANDED' then 'it repeats a delivery that has landed'
                when 'UNREADABLE'
                    then 'its row cannot be read: give the corrected row as document, in JSON'
                when 'WRONG_TYPE'
                    then concat(
                        substring_index(refused_for, 'WRONG_TYPE ', -1),
                        ': give the corrected row as document, in JSON'
                    )
                when 'LANDED_ROW_GONE'
                    then 'its landed row was removed: give its document, or land the row again'
                when 'UNFINISHED' then 'its document is unfinished'
                when 'INTERRUPTED' then 'its document came back as a recovery: name that one'
                when 'SETTLED'
                    then concat(
                        'its document has succeeded since as ',
                        settled_by_delivery_id,
                        ': give force: true to process it all the same'
                    )
                when 'UNKNOWN' then 'how its document has ended is no longer in journal_entries'
                when 'UNMATCHED'
                    then concat(
                        'its document matches no condition: there was nothing to run. Land it ',
                        'with a new delivery_id to have it examined again'
                    )
                when 'SUCCESS' then 'its document has succeeded'
                else concat('it is a ', refused_for, ', which is not processed again')
            end
        ) as message
    from requests

)

select * from final
