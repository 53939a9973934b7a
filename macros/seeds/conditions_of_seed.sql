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
