{% macro redelivery(count, transport) -%}
    {#- The meaning of a redelivery count, by a transport's counts_deliveries and
        first_delivery_count. -#}
    case
        when not coalesce({{ transport }}.counts_deliveries, false) then 'UNDEFINED'
        when {{ count }} is null or {{ count }} < 0 then 'UNDEFINED'
        when {{ count }} <= {{ transport }}.first_delivery_count then 'FIRST'
        else 'REDELIVERED'
    end
{%- endmacro %}
