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
