{% macro decision_rules() -%}
    {#- The rows of seeds/decision_rules.csv, as they are written there; none while the project is
        parsed. dbt shows no graph to unit tests: they have what begin_run has read. -#}
    {%- set seed = (graph.nodes or {})['seed.exactly_once.decision_rules'] if execute -%}
    {%- set path = seed.root_path ~ '/' ~ seed.original_file_path if seed -%}
    {{ return(adapter.exactly_once.decision_rules(path) if execute else []) }}
{%- endmacro %}

{% macro rules_where(column, value, called='rule_id') -%}
    {#- The rules of seeds/decision_rules.csv that have a value in a column, for `in`: their ids, or
        what stands in another column of theirs, each once. -#}
    {%- set found = decision_rules() | selectattr(column, 'equalto', value) | list -%}
    ('{{ found | map(attribute=called) | unique | join("', '") }}')
{%- endmacro %}

{% macro is_executed() -%}
    {#- Whether the service of a delivery's condition is to run, by its status. -#}
    status in {{ rules_where('action', 'EXECUTE', called='status') }}
{%- endmacro %}
