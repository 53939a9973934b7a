{% macro key_source(delivery, api) -%}
    {#- Which field document_key has taken. -#}
    case
        when {{ delivery }}.uuid != '' then 'UUID'
        when {{ api }} != 'JMS' and {{ delivery }}.track_id != '' then 'TRACK_ID'
        when {{ delivery }}.event_id != '' then 'EVENT_ID'
    end
{%- endmacro %}
