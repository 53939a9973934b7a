{% macro redelivery_in_words(f) -%}
    {#- What the redelivery count means for its transport. -#}
    concat(
        {{ f }}.redelivery,
        ': ',
        case
            when {{ f }}.transport is null then 'its landed row is gone'
            when {{ f }}.counts_deliveries is null
                then concat({{ f }}.transport, ' is no longer in seeds/transports.csv')
            when not {{ f }}.counts_deliveries
                then concat({{ f }}.transport, ' does not count deliveries')
            when {{ f }}.redelivery_count is null then concat({{ f }}.transport, ' gave no count')
            when {{ f }}.redelivery_count < 0
                then concat({{ f }}.transport, ' gave ', {{ f }}.redelivery_count, ', which is no count')
            else concat(
                {{ f }}.transport, ' counted ', {{ f }}.redelivery_count,
                ', and its first delivery reads ', {{ f }}.first_delivery_count
            )
        end
    )
{%- endmacro %}
