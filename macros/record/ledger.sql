{% materialization ledger, adapter='spark' %}
    {#- A ledger is made before the first run and never made again: this only adds rows to the
        run's branch (write: append) or replaces them there (write: replace). A pre_delete takes
        whole partitions out first. -#}
    {%- set relation = this.incorporate(type='table') -%}
    {%- do adapter.exactly_once.guard(model.name) -%}
    {%- set names = model.columns.keys() | join(', ') -%}

    {{ run_hooks(pre_hooks) }}

    {%- set delete_where = config.get('delete_where') -%}
    {%- if delete_where -%}
        {%- call statement('delete') -%}
            delete from {{ relation }} where {{ render(delete_where) }}
        {%- endcall -%}
    {%- endif -%}

    {%- call statement('main') -%}
        -- by name: a column that was added to the table later stands last there
        insert {{ 'overwrite' if config.get('write') == 'replace' else 'into' }} {{ relation }} by name
        select {{ names }}
        from (
            {{ sql }}
        )
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
