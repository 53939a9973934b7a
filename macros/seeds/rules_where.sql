{% macro rules_where(column, value, called='rule_id') -%}
    {#- The rules of seeds/decision_rules.csv that have a value in a column, for `in`: their ids, or
        what stands in another column of theirs, each once. -#}
    {%- set found = decision_rules() | selectattr(column, 'equalto', value) | list -%}
    ('{{ found | map(attribute=called) | unique | join("', '") }}')
{%- endmacro %}
