{% macro order_of_landing(landed) -%}
    {#- The order in which landed rows of one delivery_id count: the first landed rules. A row
        without landed_at comes last, since it counts as landed when a run consumes it.

        landed: a relation as accepted_deliveries gives it. -#}
    {{ landed }}.landing_rank,
    {{ landed }}.landed_at is null,
    {{ landed }}.landed_at,
    {{ landed }}.landed_file,
    {{ landed }}.landed_position
{%- endmacro %}
