{% macro decision_rule(inputs, known={}) -%}
    {#- The rule of seeds/decision_rules.csv that a delivery's inputs select, as a struct of its
        rule_id, status and decided_by; null where a resolver must answer first. A test compares it
        with the table on every combination of inputs.

        inputs: a SQL expression for each input column of the table; known: the columns whose value
        is known already, and that value. -#}
    {%- set branches = [] -%}
    {%- for rule in decision_rules() -%}
        {%- set ruled_out = [] -%}
        {%- for column, value in known.items()
            if rule[column] != '*' and value not in rule[column].split('|') -%}
            {%- do ruled_out.append(column) -%}
        {%- endfor -%}
        {%- set conditions = [] -%}
        {%- for column, expression in inputs.items() if rule[column] != '*' -%}
            {%- if rule[column] == 'true' -%}
                {%- do conditions.append(expression) -%}
            {%- elif rule[column] == 'false' -%}
                {%- do conditions.append('not ' ~ expression) -%}
            {%- else -%}
                {%- set values = rule[column].replace('|', "', '") -%}
                {%- do conditions.append(expression ~ " in ('" ~ values ~ "')") -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not ruled_out -%}
            {%- do branches.append(
                'when ' ~ (conditions | join(' and ') or 'true')
                ~ " then named_struct('rule_id', '" ~ rule.rule_id ~ "', 'status', '"
                ~ rule.status ~ "', 'decided_by', '" ~ rule.decided_by ~ "')"
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    (
        case
        {{ branches | join('\n') }}
        else cast(null as struct<rule_id: string, status: string, decided_by: string>)
        end
    )
{%- endmacro %}
