{% macro mark_looked_at(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do command_trigger('LOOKED_AT', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
