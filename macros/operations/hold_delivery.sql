{% macro hold_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do order_hold('HOLD', delivery_id, trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
