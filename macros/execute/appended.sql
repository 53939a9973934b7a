{% materialization appended, adapter='spark' %}
    {#- A table behind publication that each run adds to: the rows appear in one step, and only by a
        run that still holds the lock. -#}
    {%- set relation = this.incorporate(type='table') -%}

    {{ run_hooks(pre_hooks) }}

    {%- do adapter.exactly_once.append_published(model, sql) -%}
    {%- call noop_statement('main', 'OK', 'OK', '0') -%}
        -- {{ relation }} has the rows of this run
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
