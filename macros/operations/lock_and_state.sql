{% macro operations() -%}
    {#- What changes the lake outside of a run, under the lock: see the class Operations. -#}
    {{ return(adapter.exactly_once.operations(graph, invocation_id, var)) }}
{%- endmacro %}

{% macro check_is_made(name) %}
    {#- Stop an operation that reads a table or view which no command has made yet. -#}
    {%- set relation = ref(name) -%}
    {%- if load_relation(relation) is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: there is no ' ~ relation ~ ' yet: start `dbt build` once, which makes it'
        ) -%}
    {%- endif -%}
{% endmacro %}

{% macro abandon_run(run_id) %}
    {%- do log('exactly_once: ' ~ adapter.exactly_once.abandon(graph, run_id), info=true) -%}
{% endmacro %}

{% macro reset_state(really=false) %}
    {%- if really is not sameas true -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: reset_state forgets what every trigger has processed, and the next '
            ~ "run decides all that has landed again: use --args '{really: true}' if you mean it"
        ) -%}
    {%- endif -%}
    {%- set dropped = operations().reset_state(graph) -%}
    {%- do log(
        'exactly_once: dropped ' ~ (dropped | join(', ') or 'nothing')
        ~ '; what has landed is as before',
        info=true,
    ) -%}
{% endmacro %}
