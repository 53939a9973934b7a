{% macro begin_run() %}
    {%- do decision_rules() -%}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- do check_boilerplate() -%}
        {%- do check_preview_vars() -%}
        {%- set run = adapter.exactly_once.begin(
            graph,
            selected_resources,
            invocation_id,
            run_started_at,
            {
                'run_timeout': var('run_timeout'),
                'publish': var('publish'),
                'preview_all_landed': var('preview_all_landed'),
            },
        ) -%}
    {%- elif execute and flags.WHICH == 'test' -%}
        {%- do adapter.exactly_once.check_lake(graph) -%}
    {%- endif -%}
{% endmacro %}
