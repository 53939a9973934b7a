{% macro rule_in_words(decision) -%}
    {#- What a rule of seeds/decision_rules.csv found; rules with a letter share a finding and
        differ in what the resolver answered. `decision`: a relation with the columns of
        document_status. -#}
    {%- set d = decision -%}
    concat_ws(
        ': ',
        case substring({{ d }}.rule_id, 1, 3)
            when 'R01' then 'not guaranteed, or acknowledged before it is processed'
            when 'R02' then 'the trigger does not detect duplicates'
            when 'R03' then 'its transport delivered it for the first time'
            when 'R04' then 'its transport gives no count, and the trigger has no other method'
            when 'R05' then 'its transport delivered it before, and the trigger has no other method'
            when 'R06' then 'the count does not say that it is new, so the resolver was asked'
            when 'R07' then 'history does not know its key'
            when 'R08' then 'history knows its key as completed'
            when 'R09' then 'history knows its key as processing and completed'
            when 'R10' then 'history knows its key as processing, and not as completed'
            when 'R11' then 'history knows its key as processing only, so the resolver was asked'
            when 'R12' then if(
                {{ d }}.key_state = 'MISSING',
                'it has no key',
                'its key is longer than 96 characters'
            )
            when 'R13' then 'it has no usable key, so the resolver was asked'
            when 'R14' then 'the operator said that history cannot answer, so the trigger waits'
            when 'R15' then 'history cannot answer: the operator said so, or entries are removed'
            when 'R16' then 'history cannot answer, so the resolver was asked'
            when 'OPE' then 'an operator resubmitted it'
            when 'MAX' then 'its service was interrupted after each of its recoveries'
        end,
        case {{ d }}.resolver_result
            when 'TRANSIENT_ERROR' then 'it failed for the time being'
            when 'ERROR' then 'it failed'
            when 'INVALID' then 'it gave no valid answer'
            else concat('it said ', {{ d }}.resolver_result)
        end,
        {{ d }}.message
    )
{%- endmacro %}
