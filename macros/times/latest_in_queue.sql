{% macro latest_in_queue() -%}
    {#- A query of the greatest received_at that this run takes, null where it takes nothing. -#}
    select max(landed_received_at)
    from {{ ref('trigger_queue') }}
    where queue_outcome != 'REJECTED'
{%- endmacro %}
