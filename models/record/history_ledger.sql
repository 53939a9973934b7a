{%- do no_rows_where(
    not has_found('added') and is_empty(ref('in_execution_this_run'))
) -%}
{{
    config(
        incremental_strategy='append',
        partitioned_by=var('history_partition') ~ '(expires_at)',
        sorted_by='key_hash',
    )
}}
{% set columns = [
    'trigger_name', 'document_key', 'started_at', 'expires_at', 'completed_expires_at',
    'delivery_id', 'key_hash', 'key_check',
] | join(', ') -%}
with

-- a document without a service is completed by the decision
decided as (

    select
        trigger_name,
        document_key,
        started_at,
        expires_at,
        expires_at as completed_expires_at,
        delivery_id,
        key_hash,
        key_check,
        true as begins,
        true as ends
    from {{ ref('decisions') }}
    where adds_to_history and service is null

),

-- a service adds `processing` in the run that reads its start, `completed` in the run that reads
-- its end
in_execution as (

    select
        {{ columns }},
        begins_now as begins,
        is_completed as ends
    from {{ ref('in_execution_this_run') }}
    where key_hash is not null

),

-- executions that landed before their document was decided
executed_before as (

    select
        {{ columns }},
        true as begins,
        ended_by is not null as ends
    from {{ ref('opened_this_run') }}
    where adds_to_history and begun

),

documents as (

    select * from decided
    union all
    select * from in_execution
    union all
    select * from executed_before

),

final as (

    select
        documents.trigger_name,
        documents.document_key,
        ledger_row.has_processing,
        ledger_row.has_completed,
        documents.started_at,
        ledger_row.expires_at,
        documents.delivery_id,
        documents.key_hash,
        documents.key_check
    from documents
        lateral view explode({{ history_rows('begins', 'ends') | indent(8) }}) as ledger_row

)

select
    *,
    '{{ invocation_id }}' as run_id
from final
