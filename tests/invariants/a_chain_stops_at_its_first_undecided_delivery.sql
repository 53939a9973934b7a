{%- do no_rows_where(not has_found('undecided')) -%}
with

in_order as (

    select
        *,
        bool_or(not is_decided) over (
            partition by trigger_name, key_hash, key_check
            order by if(origin = 'RESUBMISSION', 0, 1), received_at, delivery_id
            rows between unbounded preceding and 1 preceding
        ) as is_after_undecided
    from {{ ref('decisions') }}
    where for_run_id = {{ checked_run(ref('decisions')) }} and key_hash is not null

)

select
    delivery_id,
    trigger_name,
    document_key,
    rule_id
from in_order
where is_after_undecided and is_decided
