{% macro keep_in_memory() -%}
    {#- The post-hook of scratch tables and of trigger_settings: if one is small, later models and
        tests read its rows from memory, see from_memory. -#}
    {%- if current_run()
        and (model.config.materialized != 'view' or model.name == 'trigger_settings') -%}
        {%- do adapter.exactly_once.keep_in_memory(model.name, this) -%}
    {%- endif -%}
{%- endmacro %}

{% macro notes_on(relation) -%}
    {#- What was found out about a relation, as ref or last_published return it, by name: a dict to
        read and to add to. If its rows are in memory, later runs find the same notes until the rows
        change. -#}
    {{ return(current_run().notes.setdefault(relation | string, {})) }}
{%- endmacro %}

{% macro from_memory(relation) -%}
    {#- The name by which the SQL of the transaction, of tests and of new_documents reads a
        relation: that of the copy in memory if this run has one. A view outlives the run, so it
        reads the relation itself. -#}
    {%- set run = current_run() -%}
    {%- if run and model.config.materialized != 'view' and (
        model.resource_type == 'test'
        or 'transaction' in model.tags
        or model.config.materialized == 'appended'
    ) -%}
        {{ return(run.in_memory.get(relation | string, relation)) }}
    {%- endif -%}
    {{ return(relation) }}
{%- endmacro %}
