{% materialization incremental, adapter='spark', supported_languages=['sql', 'python'] %}
    {#- Writes the ledgers, which are incremental models of two strategies: `append` adds this run's
        rows, `insert_overwrite` replaces all rows by them. Unlike dbt-spark, it writes to the run's
        branch and creates no table, since a ledger exists before the first run. It needs one
        statement, or none if this run has no rows for the model (see no_rows_where).
        dbt-spark writes every other incremental model. -#}
    {%- if model.package_name != 'exactly_once' or 'transaction' not in model.tags -%}
        {{ return(dbt.materialization_incremental_spark()) }}
    {%- endif -%}
    {%- set relation = this.incorporate(type='table') -%}
    {%- if is_without_rows(model.name) -%}
        {#- what reads it finds what was published, in memory if the run has that there -#}
        {%- set published = last_published(model.name) -%}
        {%- if published in current_run().in_memory.values() -%}
            {%- do current_run().in_memory.update({relation | string: published}) -%}
        {%- endif -%}
        {%- call noop_statement('main', 'OK') -%}
            -- this run changes nothing in {{ relation }}
        {%- endcall -%}
        {{ return({'relations': [relation]}) }}
    {%- endif -%}
    {%- do adapter.exactly_once.guard(model.name) -%}
    {%- set replaces = config.get('incremental_strategy') == 'insert_overwrite' -%}
    {%- set names = model.columns.keys() | list -%}
    {%- if replaces -%}
        {#- `replace where` matches columns by position: they are listed in the order of the table.
            Spark refuses the statement if the model has a column that the table lacks. -#}
        {%- set there = adapter.exactly_once.columns(relation) -%}
        {%- set names = there + names | reject('in', there) | list -%}
    {%- endif -%}

    {{ run_hooks(pre_hooks) }}

    {%- call statement('main') -%}
        -- delete and insert: in dynamic mode, which dbt-spark sets for insert_overwrite, an
        -- overwrite without rows would replace nothing
        insert into {{ relation }} {{ 'replace where true' if replaces else append_by_name() }}
        select {{ names | join(', ') }}
        from (
            {{ sql }}
        )
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}

{% macro append_by_name() -%}
    {#- How rows are appended. By default Iceberg shuffles all rows by partition before a write, so
        that it makes few files. In a run of some size and few days that saves a file or two and
        takes as long as the write, so it is switched off. -#}
    {%- set run = current_run() -%}
    {%- set days = run.queue_facts.get('landed_days') -%}
    {%- set decided = run.found.get('decided', 0) -%}
    {{ "with (`distribution-mode` = 'none') " if 10000 < decided <= 1000000 and days | length <= 2 -}}
    by name
{%- endmacro %}
