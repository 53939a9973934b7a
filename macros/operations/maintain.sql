{% macro maintain() %}
    {%- for line in adapter.exactly_once.maintain(
        graph, invocation_id, var('run_timeout'), retention()
    ) -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}
