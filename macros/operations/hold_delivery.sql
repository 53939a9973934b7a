{% macro hold_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- do order_hold('HOLD', delivery_id, trigger_name, reason, by) -%}
{% endmacro %}
