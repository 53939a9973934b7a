{% macro last_published(ledger, stored=false) -%}
    {#- The state as the last run published it: the one way in which a stage reads a ledger that
        stands to its right. The literal snapshot keeps what this run writes out of sight; a view
        outlives the run and snapshots expire, so it reads main, which is what is published.
        stored: the table, also where the run has its rows in memory. -#}
    {%- set node = none -%}
    {%- if execute and not is_unit_test() -%}
        {%- set node = graph.nodes.values() | selectattr('name', 'equalto', ledger)
            | selectattr('resource_type', 'equalto', 'model') | list | first -%}
    {%- endif -%}
    {%- set relation = node.schema ~ '.' ~ node.alias if node else target.schema ~ '.' ~ ledger -%}
    {%- set run = current_run() -%}
    {%- if node and run -%}
        {%- set relation = relation ~ ' version as of '
            ~ ("'main'" if model.config.materialized == 'view' else run.starts[ledger]) -%}
    {%- endif -%}
    {{ relation if stored else from_memory(relation) }}
{%- endmacro %}
