{%- do no_rows_where(not has_decided('DUPLICATE') and not has_decided('IN_DOUBT')) -%}
{%- set run = checked_run() %}
select
    history_ledger.delivery_id,
    history_ledger.trigger_name,
    history_ledger.has_processing,
    history_ledger.has_completed,
    document_status.status
from {{ written_by(run, ref('history_ledger')) }} as history_ledger
inner join {{ written_by(run, ref('document_status')) }} as document_status
    on
        history_ledger.delivery_id = document_status.delivery_id
        and history_ledger.trigger_name = document_status.trigger_name
where document_status.status in ('DUPLICATE', 'IN_DOUBT')
