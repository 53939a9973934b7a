{% macro is_executed() -%}
    {#- Whether the service of a delivery's condition is to run, by its status. -#}
    status in {{ rules_where('action', 'EXECUTE', called='status') }}
{%- endmacro %}
