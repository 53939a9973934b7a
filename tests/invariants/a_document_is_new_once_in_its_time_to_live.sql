-- What history finds new has no live entry: neither of an earlier run nor of a delivery before it
-- in its chain.
{%- set run = checked_run(ref('decisions'), ref('history_matches')) %}
with

in_order as (

    select
        *,
        max(
            if(
                adds_to_history,
                if(service is null, {{ live_until('expires_at') }}, {{ forever() }}),
                null
            )
        ) over (
            partition by trigger_name, key_hash, key_check
            order by if(origin = 'RESUBMISSION', 0, 1), received_at, delivery_id
            rows between unbounded preceding and 1 preceding
        ) as chain_live_until
    from {{ ref('decisions') }}
    where for_run_id = {{ run }} and key_hash is not null

),

final as (

    select
        in_order.delivery_id,
        in_order.trigger_name,
        in_order.document_key,
        in_order.received_at,
        greatest(
            in_order.chain_live_until,
            history_matches.completed_until,
            history_matches.processing_until,
            history_matches.waits_until
        ) as live_until
    from in_order
    left join {{ ref('history_matches') }} as history_matches
        on
            in_order.trigger_name = history_matches.trigger_name
            and in_order.key_hash = history_matches.key_hash
            and in_order.key_check = history_matches.key_check
    where in_order.status = 'NEW' and in_order.decided_by = 'HISTORY'

)

select *
from final
where live_until > received_at
