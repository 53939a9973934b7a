{% macro keep_in_memory() -%}
    {#- The post-hook of scratch tables: where this one is small, the models behind it read its rows
        from memory, see the macro ref. -#}
    {%- if current_run() and model.config.materialized in ['table', 'answers'] -%}
        {%- do adapter.exactly_once.keep_in_memory(this) -%}
    {%- endif -%}
{%- endmacro %}
