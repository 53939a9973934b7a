{%- set statuses = ['NEW', 'DUPLICATE', 'IN_DOUBT', 'NOT_CHECKED'] -%}
with

runs as (

    select * from {{ ref('published_runs') }}
    where kind = 'run'

),

removals as (

    select
        run_id,
        sum(cast(reference_id as bigint)) as entries_removed
    from {{ ref('journal_entries') }}
    where event = 'REMOVED'
    group by run_id

),

rejections as (

    select
        run_id,
        count(*) as rejected_at_landing
    from {{ ref('rejected_deliveries') }}
    -- rows that the run rejects have no message, and are part of `taken`
    where message is not null and reason != 'REPEATED'
    group by run_id

),

final as (

    select
        -- ids
        runs.run_number,
        runs.run_id,

        -- deliveries, once per trigger
        runs.taken,
        runs.decided,
        runs.waiting,
        runs.unrouted,
        runs.rejected,
        coalesce(rejections.rejected_at_landing, 0) as rejected_at_landing,

        -- decided, by status
        {% for status in statuses -%}
            aggregate(
                filter(runs.decided_by_trigger, d -> d.status = '{{ status }}'),
                cast(0 as bigint),
                (total, d) -> total + d.documents
            ) as {{ 'decided_' ~ status | lower }},
        {% endfor %}
        -- history
        coalesce(removals.entries_removed, 0) as entries_removed,

        -- times
        runs.started_at,
        runs.published_at,
        timestampdiff(second, runs.started_at, runs.published_at) as seconds_to_publication,
        runs.event_time,
        runs.history_removed_before
    from runs
    left join removals on runs.run_id = removals.run_id
    left join rejections on runs.run_id = rejections.run_id

)

select * from final
