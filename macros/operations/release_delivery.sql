{% macro release_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do order_hold('RELEASE', delivery_id, trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}
