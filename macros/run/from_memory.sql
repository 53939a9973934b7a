{% macro from_memory(relation) -%}
    {#- The name by which the SQL of the transaction and of tests reads a relation: that of the copy in
        memory where this run has one. A view outlives the run, so it reads the relation itself. -#}
    {%- set run = current_run() -%}
    {%- if run and model.config.materialized != 'view'
        and (model.resource_type == 'test' or 'transaction' in model.tags) -%}
        {{ return(run.in_memory.get(relation | string, relation)) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro %}
