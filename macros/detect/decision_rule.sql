{% macro decision_rule(
    eligible,
    detect_duplicates,
    use_history,
    has_resolver,
    redelivery,
    key_state,
    history_state,
    resolver_result,
    suspends_on_error
) -%}
    {#- The rule of seeds/decision_rules.csv that the nine inputs select, null where a resolver
        must answer first. This is the one place where the table stands in SQL; a test compares
        both on every combination. -#}
    case
        when not {{ eligible }} then 'R01'
        when not {{ detect_duplicates }} then 'R02'
        when {{ use_history }} and {{ key_state }} = 'USABLE' then
            {{ history_rule(has_resolver, history_state, resolver_result, suspends_on_error) }}
        when {{ use_history }} and not {{ has_resolver }} then 'R12'
        when {{ use_history }} then
            {{ answer_rule('R13', resolver_result, suspends_on_error) }}
        when {{ redelivery }} = 'FIRST' then 'R03'
        when {{ has_resolver }} then
            {{ answer_rule('R06', resolver_result, suspends_on_error) }}
        when {{ redelivery }} = 'UNDEFINED' then 'R04'
        else 'R05'
    end
{%- endmacro %}
