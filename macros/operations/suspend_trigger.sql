{% macro suspend_trigger(trigger_name, reason=none, by=none) %}
    {%- do command_trigger('SUSPEND', trigger_name, reason, by) -%}
{% endmacro %}
