-- A service that is a dbt model: one row per document that was booked.
{{ config(materialized='service', meta={'service': 'book_order'}) }}
select
    delivery_id,
    trigger_name,
    document_type,
    get_json_object(document, '$.order.number') as order_number,
    cast(get_json_object(document, '$.order.total') as decimal(12, 2)) as order_total,
    received_at
from {{ work() }}
