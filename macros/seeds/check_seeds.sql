{% macro check_seeds() %}
    {#- Stops a run before anything is decided, with a line for each wrong value in a seed or in
        preview_triggers. See dbt_exactly_once/run/seed_rules.py for the rules. -#}
    {%- if current_run() -%}
        {%- do adapter.exactly_once.check_seeds(
            graph, seed_words(), trigger_defaults(), var('preview_triggers'), model.name, this
        ) -%}
    {%- endif -%}
{% endmacro %}
