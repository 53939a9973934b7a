{% materialization appended, adapter='spark' %}
    {#- A table that each run appends to after publication: the rows appear in one commit, and only
        if the run still holds the lock. -#}
    {%- set relation = this.incorporate(type='table') -%}

    {{ run_hooks(pre_hooks) }}

    {%- do adapter.exactly_once.append_published(model, sql) -%}
    {%- call noop_statement('main', 'OK', 'OK', '0') -%}
        -- {{ relation }} has the rows of this run
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
