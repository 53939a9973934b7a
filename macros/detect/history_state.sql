{% macro history_state(completed_until, processing_until, received_at, is_unavailable, removed_until) -%}
    {#- What history knows of a key at a time, from the greatest end of life of its entries of each
        kind. is_unavailable is the operator's setting; removed history cannot answer either. -#}
    case
        when {{ is_unavailable }} then 'UNAVAILABLE'
        when coalesce({{ received_at }} < {{ removed_until }}, false) then 'UNAVAILABLE'
        when
            {{ completed_until }} > {{ received_at }} and {{ processing_until }} > {{ received_at }}
            then 'BOTH'
        when {{ completed_until }} > {{ received_at }} then 'COMPLETED'
        when {{ processing_until }} > {{ received_at }} then 'PROCESSING'
        else 'NONE'
    end
{%- endmacro %}
