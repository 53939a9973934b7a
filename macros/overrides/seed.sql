{% materialization seed, adapter='spark' %}
    {#- Replaces a seed in one atomic statement, and only if its CSV has changed: the file's
        checksum is a property of the table, so that a run knows whether the table has the CSV's
        version. Every cell is text, as it was written: dbt would read the text null as no text at
        all, and 007 as a number. A blank cell is null, and so is the column key of triggers if the
        CSV is older than that setting. Another project calls this for all of its seeds, so sql_text
        is named with its package, and dbt loads the seeds that this package does not read. -#}
    {%- if model.unique_id not in adapter.exactly_once.seeds_read(graph) -%}
        {{ return(dbt.materialization_seed_default()) }}
    {%- endif -%}
    {%- set relation = this.incorporate(type='table') -%}
    {%- set checksum = model.checksum.checksum -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set loaded = namespace(checksum=none) -%}
    {%- if existing is not none and not should_full_refresh() -%}
        {%- for row in run_query('show tblproperties ' ~ relation) if row[0] == 'csv-checksum' -%}
            {%- set loaded.checksum = row[1] -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set table = adapter.exactly_once.seed_as_written(
        model.root_path ~ '/' ~ model.original_file_path, model.config.delimiter
    ) -%}
    {%- do store_result('agate_table', response='OK', agate_table=table) -%}
    {%- set lacks_key = model.name == 'triggers' and 'key' not in table.column_names -%}
    {%- if loaded.checksum == checksum and lacks_key -%}
        {%- set present = run_query('describe table ' ~ relation).columns[0].values() -%}
        {%- set loaded.checksum = checksum if 'key' in present else none -%}
    {%- endif -%}

    {{ run_hooks(pre_hooks) }}

    {%- if loaded.checksum == checksum -%}
        {%- call noop_statement('main', 'UNCHANGED', 'UNCHANGED', '0') -%}
            -- {{ relation }} holds this version of the file already
        {%- endcall -%}
    {%- else -%}
        {%- call statement('main') -%}
            create or replace table {{ relation }}
            using iceberg
            tblproperties ('csv-checksum' = '{{ checksum }}')
            as
            select
                {% for name in table.column_names -%}
                    cast({{ name }} as string) as {{ name }}{{ ',' if not loop.last }}
                {% endfor %}
                {{- ', cast(null as string) as key' if lacks_key }}
            from values
                {% for row in table.rows -%}
                    ({% for value in row -%}
                        {{ exactly_once.sql_text(value or none) }}{{ ', ' if not loop.last }}
                    {%- endfor %}){{ ',' if not loop.last }}
                {% else -%}
                    ({{ (['null'] * (table.column_names | length)) | join(', ') }})
                {% endfor %}
                as csv ({{ table.column_names | join(', ') }})
            {{ 'where false' if table.rows | length == 0 }}
        {%- endcall -%}
    {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
