{% macro history_rule(has_resolver, history_state, resolver_result, suspends_on_error) -%}
    {#- The rule for a delivery whose key is looked up in history. -#}
    case {{ history_state }}
        when 'NONE' then 'R07'
        when 'COMPLETED' then 'R08'
        when 'BOTH' then 'R09'
        when 'PROCESSING' then
            if(
                {{ has_resolver }},
                {{ answer_rule('R11', resolver_result, suspends_on_error) }},
                'R10'
            )
        when 'UNAVAILABLE' then
            case
                when {{ suspends_on_error }} then 'R14'
                when not {{ has_resolver }} then 'R15'
                when {{ resolver_result }} = 'TRANSIENT_ERROR' then 'R16d'
                else {{ answer_rule('R16', resolver_result, 'false') }}
            end
    end
{%- endmacro %}
