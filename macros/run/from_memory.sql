{% macro from_memory(relation) -%}
    {#- The copy in memory of what this run has kept there, which stands for a relation in the SQL of the
        transaction and of tests; the relation where there is none. A view outlives the run. -#}
    {%- set run = current_run() -%}
    {%- if run and model.config.materialized != 'view'
        and (model.resource_type == 'test' or 'transaction' in model.tags) -%}
        {{ return(run.in_memory.get(relation | string, relation)) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro %}
