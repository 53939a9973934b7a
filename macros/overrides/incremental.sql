{% materialization incremental, adapter='spark', supported_languages=['sql', 'python'] %}
    {#- The ledgers are incremental models of two strategies: `append` adds this run's rows,
        `insert_overwrite` replaces all rows by them. Unlike dbt-spark's, this writes to the branch
        of the run, makes no table (a ledger is there before the first run) and needs one statement,
        and none where the model has said that this run has no rows for it (see no_rows_where).
        Every other incremental model is dbt-spark's. -#}
    {%- if 'transaction' not in model.tags -%}
        {{ return(dbt.materialization_incremental_spark()) }}
    {%- endif -%}
    {%- set relation = this.incorporate(type='table') -%}
    {%- if current_run() and model.name in current_run().without_rows -%}
        {%- call noop_statement('main', 'OK') -%}
            -- this run changes nothing in {{ relation }}
        {%- endcall -%}
        {{ return({'relations': [relation]}) }}
    {%- endif -%}
    {%- do adapter.exactly_once.guard(model.name) -%}
    {%- set replaces = config.get('incremental_strategy') == 'insert_overwrite' -%}
    {%- set names = model.columns.keys() | list -%}
    {%- if replaces -%}
        {#- `replace where` goes by position: the columns come in the order of the table, and a
            column that only the model has makes Spark refuse the statement -#}
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
    {#- How rows are appended. Before a write Iceberg brings the rows of each partition together, so that
        it makes few files. In a run of some size and few days that shuffles all rows to save a file or
        two, and takes as long as the write. -#}
    {%- set run = current_run() -%}
    {%- set days = run.queue_facts.get('landed_days') -%}
    {%- set decided = run.found.get('decided', 0) -%}
    {{ "with (`distribution-mode` = 'none') " if 10000 < decided <= 1000000 and days | length <= 2 -}}
    by name
{%- endmacro %}
