{% macro decided_by_in_words(decided_by) -%}
    case {{ decided_by }}
        when 'COUNT' then 'the redelivery count of its transport'
        when 'HISTORY' then 'the document history of its trigger'
        when 'RESOLVER' then 'the resolver of its trigger'
        when 'RESOLVER_ERROR' then 'the resolver of its trigger failed'
        when 'HISTORY_ERROR' then 'the document history could not answer'
        when 'ID' then 'it has no key that could be looked up'
        when 'OPERATOR' then 'an operator who resubmitted it'
        when 'MAX_RECOVERIES' then 'it was recovered too often'
        when 'NONE' then 'nothing: it is not checked'
    end
{%- endmacro %}
