{% macro landed_delivery_id(delivery_id) -%}
    {#- The landed delivery that a recovery or a resubmission comes from; any other is its own. -#}
    regexp_replace({{ delivery_id }}, '/(recovery|resubmission)-[0-9]+$', '')
{%- endmacro %}
