{%- do no_rows_where(
    is_without_rows('open_documents')
    and is_empty(ref('in_execution_this_run'))
    and is_empty(ref('opened_this_run'))
) -%}
{%- set run = checked_run(
    ref('decisions'), ref('in_execution_this_run'), ref('opened_this_run')
) %}
with

unfinished as (

    select
        delivery_id,
        trigger_name
    from {{ ref('in_execution_this_run') }}
    where for_run_id = {{ run }} and ended_by is null
    union all
    select
        delivery_id,
        trigger_name
    from {{ ref('opened_this_run') }}
    where for_run_id = {{ run }} and ended_by is null

),

final as (

    select
        coalesce(unfinished.delivery_id, open_documents.delivery_id) as delivery_id,
        coalesce(unfinished.trigger_name, open_documents.trigger_name) as trigger_name,
        count(unfinished.delivery_id) as unfinished,
        count(open_documents.delivery_id) as open
    from unfinished
    full outer join {{ ref('open_documents') }} as open_documents
        on
            unfinished.delivery_id = open_documents.delivery_id
            and unfinished.trigger_name = open_documents.trigger_name
    group by
        coalesce(unfinished.delivery_id, open_documents.delivery_id),
        coalesce(unfinished.trigger_name, open_documents.trigger_name)

)

select *
from final
where unfinished != 1 or open != 1
