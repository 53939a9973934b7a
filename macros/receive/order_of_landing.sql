{% macro order_of_landing(landed, transport_known=none) -%}
    {#- The order in which landed rows of one delivery_id count: of those that keep the contract the
        first landed rules. Where it must be told which one was taken by an earlier run
        (transport_known is a condition over today's transports), rows that keep the contract go
        before others and none is left out: a delivery that waits is not lost with its transport.

        landed: a relation with the columns of landing.deliveries, landed_file, landed_position. -#}
    {%- if transport_known is not none -%}
        if({{ landed }}.guaranteed is null, 1, 0), if({{ transport_known }}, 0, 1),
    {% endif -%}
    {{ landed }}.landed_at, {{ landed }}.landed_file, {{ landed }}.landed_position
{%- endmacro %}
