{% macro decision_rule(inputs, known={}, rules=none) -%}
    {#- The rule of seeds/decision_rules.csv that a delivery's inputs select, as a struct of its
        rule_id, status and decided_by; null if a resolver must answer first. A test compares it
        with the table on every combination of inputs.

        It is a tree of cases: each case branches on the first input that all remaining rules name,
        or else on one that the first rule names. (One branch for each rule, with all of its
        conditions, would be more code than Java's compiler accepts.)

        inputs: a SQL expression for each input column of the table; known: the columns whose value
        is known already, and that value; rules: the remaining rules, for the recursion. -#}
    {%- set left = [] -%}
    {%- for rule in (decision_rules() if rules is none else rules) -%}
        {%- set ruled_out = [] -%}
        {%- for column, value in known.items()
            if rule[column] != '*' and value not in rule[column].split('|') -%}
            {%- do ruled_out.append(column) -%}
        {%- endfor -%}
        {%- if not ruled_out -%}
            {%- do left.append(rule) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set named_by_first, named_by_all = [], [] -%}
    {%- for column in inputs if left and column not in known and left[0][column] != '*' -%}
        {%- do named_by_first.append(column) -%}
        {%- if left | map(attribute=column) | select('equalto', '*') | list | length == 0 -%}
            {%- do named_by_all.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not left -%}
        cast(null as struct<rule_id: string, status: string, decided_by: string>)
    {%- elif not named_by_first -%}
        struct(
        {%- for column in ['rule_id', 'status', 'decided_by'] -%}
            '{{ left[0][column] }}' as {{ column }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
    {%- else -%}
        {%- set column = (named_by_all or named_by_first)[0] -%}
        {%- set values = (left if named_by_all else left[:1]) | map(attribute=column) | join('|') -%}
        case {{ inputs[column] }}
        {%- for value in values.split('|') | unique %}
            when {{ value if value in ('true', 'false') else "'" ~ value ~ "'" }} then {{
                decision_rule(inputs, dict(known, **{column: value}), left) | indent(4) }}
        {%- endfor %}
        {%- if not named_by_all %}
            else {{ decision_rule(inputs, known, left[1:]) | indent(4) }}
        {%- endif %}
        end
    {%- endif -%}
{%- endmacro %}
