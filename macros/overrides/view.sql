{% materialization view, adapter='spark' -%}
    {#- Recreates a view only if its SQL has changed, and checks its contract only if the project's
        code has: most views are as the last run left them. The properties of a view hold checksums
        of its SQL and of the code. -#}
    {%- set relation = this.incorporate(type='view') -%}
    {%- set code = local_md5(adapter.exactly_once.code_version ~ tojson(model.columns)) -%}
    {%- set version = local_md5(code ~ sql) -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set is_kept = existing is not none and existing.is_view and not should_full_refresh() -%}
    {%- set made_of = adapter.exactly_once.view_properties(relation) if is_kept else {} -%}

    {{ run_hooks(pre_hooks) }}

    {%- if made_of['made-of-sql'] == version -%}
        {%- call noop_statement('main', 'UNCHANGED', 'UNCHANGED', '0') -%}
            -- {{ relation }} is this view already
        {%- endcall -%}
    {%- else -%}
        {%- if current_run() and 'transaction' in model.tags -%}
            {%- do adapter.exactly_once.guard_view(model.name) -%}
        {%- endif -%}
        {%- if existing is not none and not existing.is_view -%}
            {%- do adapter.drop_relation(existing) -%}
        {%- endif -%}
        {%- call statement('main') -%}
            create or replace view {{ relation }}
            tblproperties ('made-of-sql' = '{{ version }}', 'made-of-code' = '{{ code }}')
            {%- if config.get('contract').enforced and made_of['made-of-code'] != code -%}
                {{ get_assert_columns_equivalent(sql) }}
            {%- endif %}
            as
            {{ sql }}
        {%- endcall -%}
    {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{%- endmaterialization %}
