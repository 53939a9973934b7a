{% materialization scratch, adapter='spark' %}
    {#- A table of this run, recreated by each run. If the same code created the table, calls of
        Iceberg's API, which need no plan of Spark, empty it in a run that has no rows for it (see
        no_rows_where), and keep it in a run that would write the same rows (see
        rows_follow_from). -#}
    {%- set relation = this.incorporate(type='table') -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set code = adapter.exactly_once.code_version -%}
    {%- set source = current_run().rows_follow_from.get(model.name, '') -%}

    {{ run_hooks(pre_hooks) }}

    {%- if is_without_rows(model.name)
        and adapter.exactly_once.empty(relation, code) -%}
        {%- call noop_statement('main', 'OK') -%}
            -- this run has no rows for {{ relation }}
        {%- endcall -%}
    {%- elif source and adapter.exactly_once.keep_rows(relation, code, source) -%}
        {%- call noop_statement('main', 'OK') -%}
            -- {{ relation }} has the rows of this run already
        {%- endcall -%}
    {%- else -%}
        {%- if existing is not none and existing.is_view -%}
            {%- do adapter.drop_relation(existing) -%}
        {%- endif -%}
        {%- call statement('main') -%}
            create or replace table {{ relation }}
            using iceberg
            -- files of a run are small: with the splits of Iceberg one task would read them all
            tblproperties (
                'read.split.target-size' = '4194304',
                'read.split.open-file-cost' = '1048576',
                -- written once, read a few times, and whole
                'write.parquet.compression-codec' = 'uncompressed',
                'write.metadata.metrics.default' = 'none',
                'made-of-code' = '{{ code }}',
                -- named even if it is blank, since a table that is replaced keeps its properties
                'rows-follow-from' = '{{ source }}'
            )
            as
            {{ sql }}
        {%- endcall -%}
    {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}

{% macro no_rows_where(condition) -%}
    {#- Called at the top of a model or test: if the condition holds, this run has no rows for it. A
        scratch table is then emptied, a ledger stays as it was published, and a test that can find
        nothing is not evaluated. -#}
    {%- if current_run() and condition -%}
        {%- do current_run().without_rows.add(model.name) -%}
        {#- so that later runs read it from the same place in memory -#}
        {%- do rows_follow_from(['no rows', adapter.exactly_once.code_version], true) -%}
    {%- endif -%}
{%- endmacro %}

{% macro is_without_rows(model_name) -%}
    {#- Whether this run knows that it has no rows for a model. -#}
    {{ return(current_run() is not none and model_name in current_run().without_rows) }}
{%- endmacro %}

{% macro rows_follow_from(parts, condition) -%}
    {#- Called at the top of a model: if the condition holds, its rows follow from these parts and
        the code alone. A scratch table of the same parts is then kept. -#}
    {%- if condition -%}
        {%- do current_run().rows_follow_from.update({model.name: local_md5(tojson(parts))}) -%}
    {%- endif -%}
{%- endmacro %}

{% macro is_empty(relation) -%}
    {#- Whether this run knows that a relation, as ref or last_published return it, has no rows;
        False if that is not known. -#}
    {{ return(current_run() is not none and (relation | string) in current_run().empty) }}
{%- endmacro %}

{% macro spark__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
    {#- As dbt's, but a test of this package that can find nothing in this run is not evaluated
        (no_rows_where). dbt renders it for the tests of every project, and those of another one
        know no macro of this package by its name alone. -#}
    {%- if model.package_name == 'exactly_once' and is_without_rows(model.name) -%}
        {#- Spark runs no job for values -#}
        select *
        from values (0, false, false) as nothing (failures, should_warn, should_error)
    {%- else -%}
        {{ dbt.default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) }}
    {%- endif -%}
{%- endmacro %}
