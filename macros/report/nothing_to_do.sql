{% macro nothing_to_do(kind) -%}
    {#- The query of a test in tests/warnings: the rows of things_to_do of one kind. end_run lists
        them by the kind in the test's meta. -#}
    {{- config(meta={'kind': kind}) -}}
    select
        trigger_name,
        documents,
        what,
        what_to_do
    from {{ ref('things_to_do') }}
    where kind = '{{ kind }}'
{%- endmacro %}
