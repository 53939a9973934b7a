{% materialization answers, adapter='spark' %}
    {#- Asks resolvers and keeps their answers: the SQL is run until it has nobody left to ask,
        since an answer of NEW can change what those behind it in their chain need. Where no queued
        delivery has a resolver, nothing is asked and nothing made. -#}
    {%- set relation = this.incorporate(type='table') -%}
    {%- set columns = [] -%}
    {%- for column in model.columns.values() -%}
        {%- do columns.append(column.name ~ ' ' ~ column.data_type) -%}
    {%- endfor -%}
    {%- set existing = load_cached_relation(this) -%}
    {{ run_hooks(pre_hooks) }}
    {%- do adapter.exactly_once.ask_resolvers(
        relation | string,
        columns | join(', '),
        sql if current_run().triggers_with_resolver else none,
        existing is none,
    ) -%}
    {%- call noop_statement('main', 'OK') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
