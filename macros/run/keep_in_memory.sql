{% macro keep_in_memory() -%}
    {#- The post-hook of scratch tables and trigger_settings: where one is small, what stands behind it
        reads its rows from memory, see from_memory. -#}
    {%- if current_run()
        and (model.config.materialized != 'view' or model.name == 'trigger_settings') -%}
        {%- do adapter.exactly_once.keep_in_memory(this) -%}
    {%- endif -%}
{%- endmacro %}
