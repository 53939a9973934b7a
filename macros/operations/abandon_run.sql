{% macro abandon_run(run_id) %}
    {%- if execute -%}
        {%- do log('exactly_once: ' ~ adapter.exactly_once.abandon(graph, run_id), info=true) -%}
    {%- endif -%}
{% endmacro %}
