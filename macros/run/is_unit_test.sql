{% macro is_unit_test() -%}
    {#- Whether the SQL is rendered for a unit test, which gives its own rows. -#}
    {{ return(model is defined and model.resource_type == 'unit_test') }}
{%- endmacro %}
