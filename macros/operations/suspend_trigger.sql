{% macro suspend_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- do land_command('SUSPEND', trigger_name, reason, by) -%}
{% endmacro %}
