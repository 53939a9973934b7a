{% macro under_lock() %}
    {#- For the pre_hook of a model that adds to what it has behind publication: two commands that
        did so at once would add the same twice. -#}
    {%- if execute -%}
        {%- do adapter.exactly_once.guard_lock(model.name) -%}
    {%- endif -%}
{% endmacro %}
