{% macro document_key(delivery, api) -%}
    {#- What identifies a document to a trigger: the first that is not empty, as it stands. -#}
    coalesce(
        nullif({{ delivery }}.uuid, ''),
        if({{ api }} = 'JMS', null, nullif({{ delivery }}.track_id, '')),
        nullif({{ delivery }}.event_id, '')
    )
{%- endmacro %}
