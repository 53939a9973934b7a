-- What needs no service: new orders below 100, each once.
select
    delivery_id,
    get_json_object(document, '$.order.number') as order_number,
    cast(get_json_object(document, '$.order.total') as double) as order_total,
    received_at
from {{ ref('exactly_once', 'new_documents') }}
where condition_name = 'small'
