{% macro resume_trigger(trigger_name, reason=none, by=none) %}
    {%- do command_trigger('RESUME', trigger_name, reason, by) -%}
{% endmacro %}
