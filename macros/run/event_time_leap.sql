{% macro event_time_leap() -%}
    {#- A query of one line that names the delivery that moves event time by more than
        event_time_leap_ms beyond all others, or of no line if this run has none. Event time that
        was moved by mistake leaves later deliveries in doubt, since history is removed by it. -#}
    {%- set run = current_run() -%}
    {%- set earlier = "timestamp '" ~ run.greatest_received_at ~ "'"
        if run.greatest_received_at else 'cast(null as timestamp)' %}
    select
        concat(
            'warning, delivery ', delivery_id, ' moves event time from ', before, ' to ', now,
            ', beyond all others: if its received_at, ', received_at, ', is wrong, delete from ',
            {{ sql_text(source('landing', 'deliveries') | string) }}, ' where delivery_id = ',
            {{ as_literal('delivery_id') }}, ' and event time follows in the next run'
        ) as line
    from (
        select
            max_by(landed_delivery_id, landed_received_at) as delivery_id,
            max(landed_received_at) as received_at,
            least(max(landed_received_at), {{ run_clock() }}) as now,
            least(
                greatest(
                    {{ earlier }},
                    if(count(*) = 2, min(landed_received_at), null)
                ),
                {{ run_clock() }}
            ) as before
        from (
            select
                landed_delivery_id,
                landed_received_at
            from {{ ref('trigger_queue') }}
            where queue_outcome != 'REJECTED'
            group by landed_delivery_id, landed_received_at
            order by landed_received_at desc
            limit 2
        )
    )
    where now > timestampadd(millisecond, {{ var('event_time_leap_ms') }}, before)
{%- endmacro %}
