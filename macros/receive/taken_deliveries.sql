{% macro taken_deliveries(days) -%}
    {#- A relation of the landed deliveries that are decided, on some days, or wait, on any, with
        received_at, including those whose landed rows have been removed. days: see on_days. -#}
    (
        select
            delivery_id,
            received_at
        from {{ last_published('document_status') }}
        where {{ on_days('received_at', days) }}
        union all
        select
            landed_delivery_id as delivery_id,
            landed_received_at as received_at
        from {{ last_published('waiting_deliveries') }}
    )
{%- endmacro %}
