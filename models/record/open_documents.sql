{%- do no_rows_where(
    is_empty(last_published('open_documents')) and not has_found('opened')
) -%}
{{ config(incremental_strategy='insert_overwrite') }}
with

still_open as (

    select
        documents.* except (attempts, run_id),
        -- attempts up to the time when the trigger was resumed do not count
        if(
            triggers_this_run.resumed_at >= documents.last_event_at, 0, documents.attempts
        ) as attempts,
        documents.run_id
    from {{ ref('in_execution_this_run') }} as documents
    left join {{ ref('triggers_this_run') }} as triggers_this_run
        on documents.trigger_name = triggers_this_run.trigger_name
    where documents.ended_by is null

),

opened as (

    select * from {{ ref('opened_this_run') }}
    where ended_by is null

),

final as (

    {% set names = model.columns.keys() | join(', ') if model.columns else '*' -%}
    select {{ names }} from still_open
    union all
    select {{ names }} from opened

)

select * from final
