{% macro suspend_trigger(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do command_trigger('SUSPEND', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
