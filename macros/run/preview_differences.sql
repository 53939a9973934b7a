{% macro preview_differences() -%}
    {#- What a preview of all that has landed would have decided otherwise than the published runs,
        as texts. Stands behind the preview, where document_status is what was published. -#}
    select
        concat(
            published.trigger_name, ': ', format_number(count(*), 0), ' ', published.status,
            ' would be ', coalesce(previewed.status, 'waiting')
        ) as line
    from {{ ref('document_status') }} as published
    inner join {{ ref('decisions') }} as previewed
        on
            published.delivery_id = previewed.delivery_id
            and published.trigger_name = previewed.trigger_name
    where published.status != coalesce(previewed.status, 'waiting')
    group by published.trigger_name, published.status, previewed.status
    order by published.trigger_name, count(*) desc
{%- endmacro %}
