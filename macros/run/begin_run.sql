{% macro begin_run() %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set run = adapter.exactly_once.begin(
            graph,
            selected_resources,
            invocation_id,
            run_started_at,
            {'run_timeout': var('run_timeout')},
        ) -%}
    {%- endif -%}
{% endmacro %}
