{% macro abandon_run(run_id) %}
    {%- do log('exactly_once: ' ~ adapter.exactly_once.abandon(graph, run_id), info=true) -%}
{% endmacro %}
