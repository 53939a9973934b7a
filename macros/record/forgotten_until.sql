{% macro forgotten_until(only_statuses=true) -%}
    {#- The number of the run up to which retention has deleted statuses, or any rows with
        only_statuses=false; 0 if it never has. Audits may miss rows of these runs. -#}
    (
        select coalesce(max(retentions.run_number), 0)
        from {{ ref('published_runs') }} as retentions
        where
            retentions.kind = 'retention'
            {%- if only_statuses %}
            and retentions.ledger_starts['document_status']
            is distinct from retentions.ledger_publishes['document_status']
            {%- endif %}
    )
{%- endmacro %}
