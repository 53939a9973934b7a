{% macro rules_where(column, value) -%}
    {#- The ids of the rules of seeds/decision_rules.csv that have a value in a column, for `in`. -#}
    (
        {%- for rule in decision_rules() if rule[column] == value -%}
            '{{ rule.rule_id }}'{{ ', ' if not loop.last }}
        {%- endfor -%}
    )
{%- endmacro %}
