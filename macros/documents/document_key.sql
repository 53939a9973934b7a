{% macro document_key(delivery, api) -%}
    {#- What identifies a document to a trigger, and the field that holds it: the first that is not
        empty, as it stands; null where all are. -#}
    case
        when {{ delivery }}.uuid != ''
            then struct({{ delivery }}.uuid as document_key, 'UUID' as key_source)
        when {{ api }} is distinct from 'JMS' and {{ delivery }}.track_id != ''
            then struct({{ delivery }}.track_id as document_key, 'TRACK_ID' as key_source)
        when {{ delivery }}.event_id != ''
            then struct({{ delivery }}.event_id as document_key, 'EVENT_ID' as key_source)
    end
{%- endmacro %}
