-- The service book_order: one row per large order, each booked once.
{{ config(materialized='service', meta={'service': 'book_order'}) }}
select
    delivery_id,
    get_json_object(document, '$.order.number') as order_number,
    cast(get_json_object(document, '$.order.total') as double) as order_total
from {{ exactly_once.work() }}
