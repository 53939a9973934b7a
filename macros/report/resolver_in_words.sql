{% macro resolver_in_words(f) -%}
    {#- Whom the decision has asked, and what the answer was. -#}
    case
        when {{ f }}.resolver_result is null and {{ f }}.rule_id is null
            then 'asked when it is decided, if a rule needs its answer'
        when {{ f }}.resolver_result is null and {{ f }}.resolver is null
            then 'not asked: the trigger has none'
        when {{ f }}.resolver_result is null then 'not asked: no rule needed its answer'
        else concat_ws(
            ': ',
            concat(
                coalesce({{ f }}.resolver, 'a resolver that the trigger no longer has'),
                case {{ f }}.resolver_result
                    when 'TRANSIENT_ERROR' then ' failed for the time being'
                    when 'ERROR' then ' failed'
                    when 'INVALID' then ' gave no valid answer'
                    else concat(' answered ', {{ f }}.resolver_result)
                end
            ),
            {{ f }}.message
        )
    end
{%- endmacro %}
