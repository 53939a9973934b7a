{% macro routing_in_words(f) -%}
    {#- Why the trigger got it, and which of its conditions takes it. -#}
    concat_ws(
        '; ',
        if(
            {{ f }}.destination is null,
            concat('it subscribes to ', coalesce({{ f }}.document_type, 'it')),
            'it is the destination of the delivery'
        ),
        case
            when {{ f }}.status is null then 'its condition is chosen when it is decided'
            when {{ f }}.condition_name is null then 'none of its conditions takes it'
            when {{ f }}.service is null
                then concat('condition ', {{ f }}.condition_name, ', which has no service')
            else concat('condition ', {{ f }}.condition_name, ' with service ', {{ f }}.service)
        end
    )
{%- endmacro %}
