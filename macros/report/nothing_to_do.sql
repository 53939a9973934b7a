{% macro nothing_to_do(kind) -%}
    {#- The query of a test in tests/warnings: the rows of things_to_do of one kind. end_run lists
        them by the kind in the test's meta. To plan the view takes seconds, so it is evaluated once
        for all tests of a command. -#}
    {{- config(meta={'kind': kind}) -}}
    {%- set things = ref('things_to_do') -%}
    {%- if execute and flags.WHICH in ['build', 'test'] -%}
        {%- set things = adapter.exactly_once.evaluated_once(things | string) -%}
    {%- endif -%}
    select
        trigger_name,
        documents,
        what,
        what_to_do
    from {{ things }}
    where kind = '{{ kind }}'
{%- endmacro %}
