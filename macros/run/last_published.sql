{% macro last_published(ledger) -%}
    {#- The state as the last run published it: the one way in which a stage reads a ledger that
        stands to its right. The literal snapshot keeps what this run writes out of sight; a view
        outlives the run and snapshots expire, so it reads main, which is what is published. -#}
    {%- set node = (graph.nodes.values() | selectattr('name', 'equalto', ledger)
        | selectattr('resource_type', 'equalto', 'model') | list | first) if execute -%}
    {%- set run = current_run() -%}
    {%- if node and run -%}
        {{ from_memory(
            node.schema ~ '.' ~ node.alias ~ ' version as of '
            ~ ("'main'" if model.config.materialized == 'view' else run.starts[ledger])
        ) }}
    {%- elif node -%}
        {{ node.schema }}.{{ node.alias }}
    {%- else -%}
        {{ target.schema }}.{{ ledger }}
    {%- endif -%}
{%- endmacro %}
