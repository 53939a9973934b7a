{% macro resume_trigger(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do command_trigger('RESUME', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
