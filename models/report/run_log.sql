{%- set statuses = ['NEW', 'DUPLICATE', 'IN_DOUBT', 'NOT_CHECKED'] -%}
with

runs as (

    select * from {{ ref('published_runs') }}

),

final as (

    select
        -- ids
        run_number,
        run_id,

        -- deliveries, once per trigger
        taken,
        decided,
        waiting,
        unrouted,
        rejected,

        -- decided, by status
        {% for status in statuses -%}
            aggregate(
                filter(decided_by_trigger, d -> d.status = '{{ status }}'),
                cast(0 as bigint),
                (total, d) -> total + d.documents
            ) as {{ 'decided_' ~ status | lower }},
        {% endfor %}
        -- times
        started_at,
        published_at,
        timestampdiff(second, started_at, published_at) as seconds_to_publication,
        event_time,
        history_removed_before
    from runs

)

select * from final
