{% macro remove_expired_history() %}
    {%- do log(
        'exactly_once: '
        ~ adapter.exactly_once.remove_expired_history(
            graph, invocation_id, var('run_timeout'), has_expired("timestamp '{bound}'")
        ),
        info=true,
    ) -%}
{% endmacro %}
