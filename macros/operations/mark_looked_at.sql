{% macro mark_looked_at(trigger_name=none, reason=none, by=none) %}
    {%- if execute and trigger_name is none -%}
        {%- do adapter.exactly_once.describe(graph) -%}
        {%- do adapter.exactly_once.ensure_tables() -%}
        {%- do land_command('LOOKED_AT', none, reason, by) -%}
    {%- elif execute -%}
        {%- do command_trigger('LOOKED_AT', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
