{% macro resubmit(
    delivery_id=none,
    trigger_name=none,
    service=none,
    cause=none,
    message_like=none,
    since=none,
    until=none,
    document=none,
    force=false,
    reason=none,
    by=none,
    dry_run=false,
    really=false
) %}
    {%- if execute -%}
        {%- if trigger_name is none -%}
            {%- do adapter.exactly_once.describe(graph) -%}
            {%- do adapter.exactly_once.ensure_tables() -%}
        {%- else -%}
            {%- do check_trigger(trigger_name) -%}
        {%- endif -%}
        {%- if delivery_id is not none -%}
            {%- set wanted -%}
                select {{ sql_text(delivery_id) }} as delivery_id, {{ sql_text(trigger_name) }} as trigger_name
            {%- endset -%}
            {%- set requested = 'the request to take ' ~ delivery_id ~ ' again'
                ~ (' in ' ~ trigger_name if trigger_name else '') ~ ' has landed' -%}
        {%- else -%}
            {%- set wanted = failed_documents_like(
                trigger_name, service, cause, message_like, since, until
            ) -%}
            {%- set documents = list_failed_documents(wanted) -%}
            {%- set requested = 'requests to take ' ~ documents ~ ' documents again have landed' -%}
        {%- endif -%}
        {%- if delivery_id is none and (documents == 0 or dry_run or really is not sameas true) -%}
            {%- do log(
                'exactly_once: nothing is resubmitted'
                ~ ('' if documents == 0 else '; add `really: true` to resubmit these '
                ~ documents ~ ' documents'),
                info=true,
            ) -%}
        {%- else -%}
            {%- call statement('request') -%}
                insert into {{ source('landing', 'resubmissions') }} (
                    resubmission_id, delivery_id, trigger_name, requested_at, requested_by, reason,
                    document, force
                )
                select
                    uuid(), delivery_id, trigger_name, current_timestamp(),
                    {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }},
                    {{ sql_text(document) }}, {{ 'true' if force is sameas true else 'false' }}
                from ({{ wanted }})
            {%- endcall -%}
            {%- do log(
                'exactly_once: ' ~ requested ~ '; the next run takes or refuses them, see journal_log',
                info=true,
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
