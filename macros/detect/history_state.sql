{% macro history_state(
    completed_until, processing_until, received_at, is_unavailable, removed_until, had_waited
) -%}
    {#- The state of a key in history at received_at. completed_until, processing_until: until when
        its entries of each kind are live, at most; is_unavailable: the operator's setting;
        removed_until: up to which time history was removed and cannot answer; had_waited: whether
        the delivery had waited for a document of the key. If that has completed, `completed` is
        live for the delivery; else it was interrupted. It had begun, though the entry of its begin
        may have expired while its service was at work. -#}
    case
        when {{ is_unavailable }} then 'UNAVAILABLE'
        when coalesce({{ received_at }} < {{ removed_until }}, false) then 'UNAVAILABLE'
        when
            {{ completed_until }} > {{ received_at }} and {{ processing_until }} > {{ received_at }}
            then 'BOTH'
        when {{ completed_until }} > {{ received_at }} then 'COMPLETED'
        when {{ processing_until }} > {{ received_at }} or {{ had_waited }} then 'PROCESSING'
        else 'NONE'
    end
{%- endmacro %}

{% macro waits_for_document(completed_until, waits_until, received_at, is_unavailable) -%}
    {#- Whether a delivery waits for an unfinished document of its key: it does unless an entry
        `completed` is live. Removed entries do not matter, since the document itself is known.
        is_unavailable: the operator's setting. -#}
    (
        not {{ is_unavailable }}
        and coalesce({{ waits_until }} > {{ received_at }}, false)
        and not coalesce({{ completed_until }} > {{ received_at }}, false)
    )
{%- endmacro %}

{% macro suspends_here(delivery, history_state) -%}
    {#- Whether an error in deciding a delivery suspends its trigger. It does not if entries were
        removed: waiting does not restore them. A history that an operator has set as unavailable
        will be available again. -#}
    (
        {{ delivery }}.suspends_on_error
        and ({{ history_state }} != 'UNAVAILABLE' or {{ delivery }}.is_unavailable)
    )
{%- endmacro %}
