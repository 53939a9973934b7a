{% macro rebuild_history() %}
    {%- do log(
        'exactly_once: '
        ~ adapter.exactly_once.rebuild_history(
            graph, invocation_id, var('run_timeout'), history_from_statuses()
        ),
        info=true,
    ) -%}
{% endmacro %}
