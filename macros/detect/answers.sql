{% materialization answers, adapter='spark' %}
    {#- Asks resolvers and keeps their answers. The SQL is repeated until it finds no delivery left
        to ask about, since an answer of NEW can change what later deliveries of its chain need. If
        no queued delivery has a resolver, it asks nothing and only creates a missing table. -#}
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
        sql if current_run().found.triggers_with_resolver else none,
        existing is none,
    ) -%}
    {%- call noop_statement('main', 'OK') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [relation]}) }}
{% endmaterialization %}

{% macro answers_so_far() -%}
    {#- The answers of resolvers so far in this run; empty if none is asked. resolver_answers asks
        in rounds and reads its own answers through detection, so a ref to it would be a cycle. -#}
    {%- set run = current_run() -%}
    {%- if run and run.found.get('triggers_with_resolver') -%}
        {%- set answers = graph.nodes['model.exactly_once.resolver_answers'] -%}
        (
            select *
            from {{ answers.schema }}.{{ answers.alias }}
            where for_run_id = '{{ invocation_id }}'
        )
    {%- else -%}
        (
            select
                cast(null as string) as trigger_name,
                cast(null as string) as delivery_id,
                cast(null as string) as resolver_result,
                cast(null as string) as message
            where false
        )
    {%- endif -%}
{%- endmacro %}
