{% macro decision_rules() -%}
    {#- The rows of seeds/decision_rules.csv, as they are written there; none while the project is
        parsed. dbt gives unit tests no graph: they use the rows that begin_run has read. -#}
    {%- set seed = (graph.nodes or {})['seed.exactly_once.decision_rules'] if execute -%}
    {%- set path = seed.root_path ~ '/' ~ seed.original_file_path if seed -%}
    {{ return(adapter.exactly_once.decision_rules(path) if execute else []) }}
{%- endmacro %}

{% macro rules_where(column, value, called='rule_id') -%}
    {#- A list for `in`: of the rules of seeds/decision_rules.csv with a value in a column, the ids
        or, with `called`, the distinct values of another column. -#}
    {%- set found = decision_rules() | selectattr(column, 'equalto', value) | list -%}
    ('{{ found | map(attribute=called) | unique | join("', '") }}')
{%- endmacro %}

{% macro is_executed() -%}
    {#- Whether the service of a delivery's condition is to run, by its status. -#}
    status in {{ rules_where('action', 'EXECUTE', called='status') }}
{%- endmacro %}
