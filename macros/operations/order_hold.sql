{% macro order_hold(command, delivery_id, trigger_name, reason, by) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- set decided -%}
        select status from {{ ref('document_status') }}
        where
            delivery_id = {{ sql_text(delivery_id) }}
            and trigger_name = {{ sql_text(trigger_name) }}
    {%- endset -%}
    {%- for row in run_query(decided) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ delivery_id ~ ' was decided in ' ~ trigger_name ~ ' already: '
            ~ row[0] ~ '; only a delivery that waits can be held or released'
        ) -%}
    {%- endfor -%}
    {%- set landing -%}
        insert into {{ source('landing', 'delivery_holds') }}
            (hold_id, delivery_id, trigger_name, command, issued_at, issued_by, reason)
        select
            uuid(), {{ sql_text(delivery_id) }}, {{ sql_text(trigger_name) }},
            {{ sql_text(command) }}, current_timestamp(),
            {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }}
    {%- endset -%}
    {%- do run_query(landing) -%}
    {%- set has_landed = run_query(
        'select 1 from ' ~ source('landing', 'deliveries') ~ ' where delivery_id = '
        ~ landed_delivery_id(sql_text(delivery_id)) ~ ' limit 1'
    ).rows | length > 0 -%}
    {%- do log(
        'exactly_once: ' ~ command ~ ' of ' ~ delivery_id ~ ' in ' ~ trigger_name ~ ' has landed; '
        ~ (
            'the next run follows it' if has_landed
            else 'no delivery of that id has: the run that takes one follows it'
        ),
        info=true,
    ) -%}
{% endmacro %}
