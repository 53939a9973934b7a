{% macro run_clock() -%}
    {#- The clock of the run: run_started_at, as a literal. -#}
    timestamp '{{ run_started_at.strftime("%Y-%m-%d %H:%M:%S.%f") }}'
{%- endmacro %}

{% macro present_time() -%}
    {#- The present time for the views of open work: the clock, or the variable as_of. -#}
    {%- if var('as_of') -%}
        timestamp '{{ var('as_of') }}'
    {%- else -%}
        current_timestamp()
    {%- endif -%}
{%- endmacro %}

{% macro event_time_now() -%}
    {#- The greatest received_at among the accepted landed deliveries that this or an earlier run
        has consumed, or the run's clock if that is earlier. -#}
    least({{ greatest_received_at() }}, {{ run_clock() }})
{%- endmacro %}

{% macro greatest_received_at() -%}
    {#- The greatest received_at ever consumed, as a scalar; null if nothing was consumed. -#}
    {%- set run = current_run() -%}
    {%- set earlier = run.greatest_received_at if run else none -%}
    greatest(
        {{ "timestamp '" ~ earlier ~ "'" if earlier else 'cast(null as timestamp)' }},
        {% if not run or 'latest_in_queue' not in run.found -%}
            ({{ latest_in_queue() }})
        {%- elif run.found.latest_in_queue -%}
            timestamp '{{ run.found.latest_in_queue }}'
        {%- else -%}
            cast(null as timestamp)
        {%- endif %}
    )
{%- endmacro %}

{% macro latest_in_queue() -%}
    {#- A query of the greatest received_at that this run takes; null if it takes nothing. -#}
    select max(landed_received_at)
    from {{ ref('trigger_queue') }}
    where queue_outcome != 'REJECTED'
{%- endmacro %}

{% macro feed_time(received_at, landed_at, happened_at) -%}
    {#- When something happened to a delivery here, in the time of its feed: received_at plus the
        time from landed_at to happened_at, at least zero; null if happened_at is null. In a live
        feed that is wall-clock time, in the replay of an old feed the old time. -#}
    case
        when {{ happened_at }} > {{ landed_at }}
            then least(
                {{ received_at }} + ({{ happened_at }} - {{ landed_at }}), {{ latest_time() }}
            )
        when {{ happened_at }} is not null then {{ received_at }}
    end
{%- endmacro %}
