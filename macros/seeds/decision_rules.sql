{% macro decision_rules() -%}
    {#- The rows of seeds/decision_rules.csv, as they are written there; none while the project is
        parsed. dbt shows no graph to unit tests: they have what begin_run has read. -#}
    {%- set seed = (graph.nodes or {})['seed.exactly_once.decision_rules'] if execute -%}
    {%- set path = seed.root_path ~ '/' ~ seed.original_file_path if seed -%}
    {{ return(adapter.exactly_once.decision_rules(path) if execute else []) }}
{%- endmacro %}


{% macro rules_where(column, value) -%}
    {#- The ids of the rules of seeds/decision_rules.csv that have a value in a column, for `in`. -#}
    (
        {%- for rule in decision_rules() if rule[column] == value -%}
            '{{ rule.rule_id }}'{{ ', ' if not loop.last }}
        {%- endfor -%}
    )
{%- endmacro %}
