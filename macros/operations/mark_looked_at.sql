{% macro mark_looked_at(trigger_name=none, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- if trigger_name is not none -%}
        {#- one that has left the seed has left its doubts -#}
        {%- do check_trigger(trigger_name, or_decided=true) -%}
    {%- endif -%}
    {%- do land_command('LOOKED_AT', trigger_name, reason, by) -%}
{% endmacro %}
