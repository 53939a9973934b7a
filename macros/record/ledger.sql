{% materialization ledger, adapter='spark' %}
    {#- A ledger is made before the first run and never made again: this only adds rows to the
        run's branch (write: append) or replaces them there (write: replace). A pre_delete takes
        whole partitions out first. -#}
    {%- set relation = this.incorporate(type='table') -%}
    {%- do adapter.exactly_once.guard(model.name) -%}
    {%- set replaces = config.get('write') == 'replace' -%}
    {%- set names = model.columns.keys() | list -%}
    {%- if replaces -%}
        {#- where Spark knows no `by name`: a column that was added to the table later stands last
            there, and one that the table lacks is refused -#}
        {%- set there = adapter.exactly_once.columns(relation) -%}
        {%- set names = there + names | reject('in', there) | list -%}
    {%- endif -%}

    {{ run_hooks(pre_hooks) }}

    {%- set delete_where = config.get('delete_where') -%}
    {%- if delete_where -%}
        {%- call statement('delete') -%}
            delete from {{ relation }} where {{ render(delete_where) }}
        {%- endcall -%}
    {%- endif -%}

    {%- call statement('main') -%}
        -- not overwrite: in dynamic mode, which dbt-spark sets for models of insert_overwrite, one
        -- without rows would replace nothing
        insert into {{ relation }} {{ 'replace where true' if replaces else 'by name' }}
        select {{ names | join(', ') }}
        from (
            {{ sql }}
        )
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
