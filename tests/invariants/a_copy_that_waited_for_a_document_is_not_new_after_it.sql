{%- do no_rows_where(is_empty(ref('in_execution_this_run'))) -%}
-- A delivery that waited for an unfinished document of its key is not found new by history once the
-- document has succeeded or was interrupted, however late that is reported.
{%- set run = checked_run(ref('decisions'), ref('in_execution_this_run')) %}
select
    decisions.delivery_id,
    decisions.trigger_name,
    decisions.document_key,
    documents.delivery_id as ended_delivery_id
from {{ ref('decisions') }} as decisions
inner join {{ ref('in_execution_this_run') }} as documents
    on
        decisions.trigger_name = documents.trigger_name
        and decisions.key_hash = documents.key_hash
        and decisions.key_check = documents.key_check
        and decisions.awaited_key_hash = documents.key_hash
where
    decisions.for_run_id = {{ run }}
    and documents.for_run_id = {{ run }}
    and decisions.decided_by = 'HISTORY'
    and decisions.status = 'NEW'
    and documents.ended_by in ('SUCCESS', 'INTERRUPTED')
