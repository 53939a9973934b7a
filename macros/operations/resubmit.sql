{% macro resubmit(delivery_id, trigger_name=none, document=none, reason=none, by=none) %}
    {%- if execute -%}
        {%- if trigger_name is none -%}
            {%- do adapter.exactly_once.describe(graph) -%}
            {%- do adapter.exactly_once.ensure_tables() -%}
        {%- else -%}
            {%- do check_trigger(trigger_name) -%}
        {%- endif -%}
        {%- do run_query(
            'insert into ' ~ source('landing', 'resubmissions')
            ~ ' (resubmission_id, delivery_id, trigger_name, requested_at, requested_by, reason,'
            ~ ' document) select uuid(), ' ~ sql_text(delivery_id) ~ ', ' ~ sql_text(trigger_name)
            ~ ', current_timestamp(), ' ~ sql_text(by or env_var('USER', 'unknown')) ~ ', '
            ~ sql_text(reason) ~ ', ' ~ sql_text(document)
        ) -%}
        {%- do log(
            'exactly_once: the request to take ' ~ delivery_id ~ ' again'
            ~ (' in ' ~ trigger_name if trigger_name else '') ~ ' has landed; the next run takes it or refuses it, see journal_log',
            info=true,
        ) -%}
    {%- endif -%}
{% endmacro %}
