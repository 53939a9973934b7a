{%- do no_rows_where(current_run() and not current_run().found.triggers_with_resolver) -%}
-- And its answer is one that the rules know, or that it was not asked.
select
    trigger_name,
    delivery_id,
    count(*) as answers,
    array_agg(resolver_result) as resolver_results
from {{ ref('resolver_answers') }}
where for_run_id = {{ checked_run(ref('decisions')) }}
group by trigger_name, delivery_id
having
    count(*) > 1
    or not coalesce(
        min(resolver_result) in (
            'NEW', 'DUPLICATE', 'IN_DOUBT', 'TRANSIENT_ERROR', 'ERROR', 'INVALID', 'NOT_ASKED'
        ),
        false
    )
