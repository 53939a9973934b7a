{% macro last_published(ledger, stored=false) -%}
    {#- A ledger as the last run published it: the only way in which a stage reads a ledger that a
        later stage writes. The literal snapshot hides what this run writes. A view outlives the run
        and snapshots expire, so it reads main, the published state.
        stored: read the table even if the run has its rows in memory. -#}
    {%- set node = none -%}
    {%- if execute and not is_unit_test() -%}
        {%- set node = graph.nodes['model.exactly_once.' ~ ledger] -%}
    {%- endif -%}
    {%- set relation = node.schema ~ '.' ~ node.alias if node else target.schema ~ '.' ~ ledger -%}
    {%- set run = current_run() -%}
    {%- if node and run -%}
        {%- set relation = relation ~ ' version as of '
            ~ ("'main'" if model.config.materialized == 'view' else run.starts[ledger]) -%}
    {%- endif -%}
    {{ relation if stored else from_memory(relation) }}
{%- endmacro %}
