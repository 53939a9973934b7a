{% macro history_in_words(f) -%}
    {#- What history said when the delivery was decided. -#}
    case
        when {{ f }}.rule_id is null then 'asked when it is decided'
        when {{ f }}.status = 'NOT_CHECKED' then 'not asked: nothing is checked'
        when {{ f }}.rule_id in {{ rules_where('use_history', 'false') }}
            then 'not asked: the trigger does not use it'
        when {{ f }}.rule_id in {{ rules_where('key_state', 'MISSING|TOO_LONG') }}
            then 'not asked: there is nothing to look up'
        when {{ f }}.rule_id = 'OPERATOR' then 'not asked: the operator has decided'
        when {{ f }}.rule_id = 'MAX_RECOVERIES' then 'not asked: it came back too often'
        else concat_ws(
            ', by delivery ',
            case {{ f }}.history_state
                when 'NONE' then 'NONE: it did not know the key'
                when 'PROCESSING' then 'PROCESSING: it knew the key as begun and not as completed'
                when 'COMPLETED' then 'COMPLETED: it knew the key as completed'
                when 'BOTH' then 'BOTH: it knew the key as begun and completed'
                when 'UNAVAILABLE' then concat(
                    'UNAVAILABLE: the operator said that it could not answer, ',
                    'or it had removed entries that this delivery may need'
                )
            end,
            {{ f }}.matched_delivery_id
        )
    end
{%- endmacro %}
