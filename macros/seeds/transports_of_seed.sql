{% macro transports_of_seed() -%}
    {#- seeds/transports.csv as it is meant, see seed_value. -#}
    (
        select
            {{ seed_value('transport', 'string', 'transport') }} as transport,
            {{ seed_value('api', 'string', 'api') }} as api,
            {{ seed_value('counts_deliveries', 'boolean', 'counts_deliveries') }}
                as counts_deliveries,
            {{ seed_value('first_delivery_count', 'int', 'first_delivery_count') }}
                as first_delivery_count
        from {{ ref('transports') }}
    )
{%- endmacro %}
