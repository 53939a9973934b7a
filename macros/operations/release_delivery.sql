{% macro release_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- do order_hold('RELEASE', delivery_id, trigger_name, reason, by) -%}
{% endmacro %}
