{% macro mark_looked_at(trigger_name=none, reason=none, by=none) %}
    {%- if execute and trigger_name is none -%}
        {%- do adapter.exactly_once.describe(graph) -%}
        {%- do adapter.exactly_once.ensure_tables() -%}
        {%- do land_command('LOOKED_AT', none, reason, by) -%}
    {%- elif execute -%}
        {#- one that has left the seed has left its doubts -#}
        {%- do check_trigger(trigger_name, or_decided=true) -%}
        {%- do land_command('LOOKED_AT', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
