{% macro land_command(command, trigger_name, reason, by) %}
    {%- set landing -%}
        insert into {{ source('landing', 'trigger_commands') }}
            (command_id, trigger_name, command, issued_at, issued_by, reason)
        select
            uuid(), {{ sql_text(trigger_name) }}, {{ sql_text(command) }}, current_timestamp(),
            {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }}
    {%- endset -%}
    {%- do run_query(landing) -%}
    {%- do log(
        'exactly_once: ' ~ command ~ ' of ' ~ (trigger_name or 'rejected rows') ~ ' has landed'
        ~ ('; the next run follows it' if command != 'LOOKED_AT' else ''),
        info=true,
    ) -%}
{% endmacro %}
