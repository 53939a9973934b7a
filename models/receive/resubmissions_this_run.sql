{#- Requests are rare: if none has landed, statuses and journal are not read. -#}
{%- set run = current_run() -%}
{%- set is_asked = run.has_landed('resubmissions') if run else true -%}
{%- do no_rows_where(not is_asked) -%}
with

requests as (

    select * from {{ ref('landing_requests') }}
    {% if is_asked -%}
        union all
        select * from {{ ref('delivery_requests') }}
    {% endif %}

),

final as (

    select
        *,
        '{{ invocation_id }}' as for_run_id
    from requests

)

select * from final
