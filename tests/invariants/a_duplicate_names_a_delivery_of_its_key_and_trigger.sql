{%- do no_rows_where(not has_decided('DUPLICATE', 'HISTORY')) -%}
{%- set run = checked_run(ref('decisions'), ref('history_matches')) %}
with

decisions as (

    select * from {{ ref('decisions') }}
    where for_run_id = {{ run }}

),

known as (

    select
        history_matches.trigger_name,
        history_matches.key_hash,
        history_matches.key_check,
        explode(history_matches.entries.delivery_id) as delivery_id,
        -- whose status retention may have forgotten, so that it landed as a new one
        true as is_of_an_earlier_run
    from {{ ref('history_matches') }} as history_matches
    where history_matches.for_run_id = {{ run }}
    union all
    select
        trigger_name,
        key_hash,
        key_check,
        delivery_id,
        false as is_of_an_earlier_run
    from decisions
    where adds_to_history

),

final as (

    select
        decisions.delivery_id,
        decisions.trigger_name,
        decisions.document_key,
        decisions.matched_delivery_id
    from decisions
    left anti join known
        on
            decisions.trigger_name = known.trigger_name
            and decisions.key_hash = known.key_hash
            and decisions.key_check = known.key_check
            and decisions.matched_delivery_id = known.delivery_id
            and (known.is_of_an_earlier_run or decisions.delivery_id != known.delivery_id)
    where decisions.status = 'DUPLICATE' and decisions.decided_by = 'HISTORY'

)

select * from final
