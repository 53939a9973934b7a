{% macro greatest_received_at() -%}
    {#- The greatest received_at ever consumed, as a scalar; null where nothing was. -#}
    {%- set earlier = adapter.exactly_once.run.greatest_received_at
        if execute and adapter.exactly_once.run else none -%}
    greatest(
        {{ "timestamp '" ~ earlier ~ "'" if earlier else 'cast(null as timestamp)' }},
        (
            select max(landed_received_at)
            from {{ ref('trigger_queue') }}
            where place != 'REJECTED'
        )
    )
{%- endmacro %}
