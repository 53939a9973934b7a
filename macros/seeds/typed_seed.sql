{% macro typed_seed(seed) -%}
    {#- A relation of a seed's rows as they are meant, see seed_value; seeds/triggers.csv has
        trigger_settings. -#}
    {%- set types = {
        'transports': {
            'transport': 'string', 'api': 'string',
            'counts_deliveries': 'boolean', 'first_delivery_count': 'int',
        },
        'trigger_conditions': {
            'position': 'int', 'trigger_name': 'string', 'condition_name': 'string',
            'document_type': 'string', 'filter': 'string', 'service': 'string',
        },
    }[seed] -%}
    (
        select
            {% for name, type in types.items() -%}
                {{ seed_value(name, type, '`' ~ name ~ '`') }} as `{{ name }}`
                {{- ',' if not loop.last }}
            {% endfor %}
        from {{ ref(seed) }}
    )
{%- endmacro %}
