{% macro history_state(completed_until, waits_until, processing_until, received_at, is_unavailable, removed_until) -%}
    {#- What history says of a key at a time, from the greatest end of life of its entries of each
        kind. WAITS is no state of the rule table: a copy of the document has not been begun, and
        the delivery waits for it. is_unavailable is the operator's word; what has been removed
        cannot be told either, but an unfinished document is known whatever has been removed. -#}
    case
        when {{ is_unavailable }} then 'UNAVAILABLE'
        when
            coalesce({{ waits_until }} > {{ received_at }}, false)
            and not coalesce({{ completed_until }} > {{ received_at }}, false)
            then 'WAITS'
        when coalesce({{ received_at }} < {{ removed_until }}, false) then 'UNAVAILABLE'
        when
            {{ completed_until }} > {{ received_at }} and {{ processing_until }} > {{ received_at }}
            then 'BOTH'
        when {{ completed_until }} > {{ received_at }} then 'COMPLETED'
        when {{ processing_until }} > {{ received_at }} then 'PROCESSING'
        else 'NONE'
    end
{%- endmacro %}
