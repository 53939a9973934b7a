{% macro conditions_of_seed() -%}
    {#- seeds/trigger_conditions.csv as it is meant, see seed_value. -#}
    (
        select
            {{ seed_value('position', 'int', 'position') }} as position,
            {% for name in ['trigger_name', 'condition_name', 'document_type', 'filter', 'service'] -%}
                {{ seed_value(name, 'string', '`' ~ name ~ '`') }} as `{{ name }}`{{ ',' if not loop.last }}
            {% endfor %}
        from {{ ref('trigger_conditions') }}
    )
{%- endmacro %}


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
