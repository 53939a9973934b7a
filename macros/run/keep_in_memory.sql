{% macro keep_in_memory() -%}
    {#- The post-hook of scratch tables and of trigger_settings: if one is small, the models and tests
        behind it read its rows from memory, see from_memory. -#}
    {%- if current_run()
        and (model.config.materialized != 'view' or model.name == 'trigger_settings') -%}
        {%- do adapter.exactly_once.keep_in_memory(this) -%}
    {%- endif -%}
{%- endmacro %}
