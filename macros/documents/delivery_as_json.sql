{% macro delivery_as_json() -%}
    {#- A landed delivery as one text, to keep what was rejected and to know it again. `exactly-once
        land` renders this file too, so it uses nothing of dbt. -#}
    to_json(
        struct(
            delivery_id, received_at, landed_at, transport, document_type, destination, guaranteed,
            uuid, track_id, event_id, redelivery_count, errors_to, document
        )
    )
{%- endmacro %}
