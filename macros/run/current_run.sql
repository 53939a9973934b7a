{% macro current_run() -%}
    {#- The run that is open, with what it has frozen (dbt_exactly_once, class Run); none while the
        project is parsed, outside of a run and in unit tests. -#}
    {{ return(adapter.exactly_once.run if execute and not is_unit_test() else none) }}
{%- endmacro %}

{% macro is_unit_test() -%}
    {#- Whether the SQL is rendered for a unit test, which gives its own rows. -#}
    {{ return(model is defined and model.resource_type == 'unit_test') }}
{%- endmacro %}
