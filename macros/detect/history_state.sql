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

{% macro waits_for_document(completed_until, waits_until, received_at, is_unavailable) -%}
    {#- Whether a delivery waits for an unfinished document of its key, which no live completed entry
        spares it; also where entries have been removed, since the document is known. is_unavailable
        is the operator's setting. -#}
    (
        not {{ is_unavailable }}
        and coalesce({{ waits_until }} > {{ received_at }}, false)
        and not coalesce({{ completed_until }} > {{ received_at }}, false)
    )
{%- endmacro %}

{% macro suspends_here(delivery, history_state) -%}
    {#- Whether an error in deciding a delivery suspends its trigger. It does not where entries have
        been removed, since waiting would not bring them back. An unavailable history comes back. -#}
    (
        {{ delivery }}.suspends_on_error
        and ({{ history_state }} != 'UNAVAILABLE' or {{ delivery }}.is_unavailable)
    )
{%- endmacro %}
