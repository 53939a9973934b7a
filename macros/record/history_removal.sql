{% macro history_removal_bound() -%}
    {#- The expiry before which this run removes history, as a literal at a partition border (a
        delete that covers whole partitions changes metadata only). It follows event time, so that
        an old feed can be replayed, and keeps what an undecided delivery may need. -#}
    {%- set skew = var('clock_skew_tolerance_ms') -%}
    {%- set bound = none -%}
    {%- if current_run() -%}
        {%- if 'removal_bound' not in current_run().found -%}
            {%- set query -%}
                with

                latest as (

                    -- before any delivery the feed has no time, and nothing has expired
                    select
                        if(
                            {{ greatest_received_at() }} is null,
                            null,
                            timestampadd(
                                millisecond,
                                {{ -(skew + var('allowed_lateness_ms')) }},
                                {{ event_time_now() }}
                            )
                        ) as bound

                ),

                undecided as (

                    select min(received_at) as oldest
                    from (
                        select received_at from {{ ref('decisions') }}
                        where {{ 'not is_decided' if has_found('undecided') else 'false' }}
                        union all
                        select received_at from {{ ref('trigger_queue') }}
                        where {{ "queue_outcome = 'WAITING'" if has_found('not_taken') else 'false' }}
                        union all
                        select waiting.received_at
                        from {{ last_published('waiting_deliveries') }} as waiting
                        left semi join {{ ref('triggers_this_run') }} as untouched
                            on
                                waiting.trigger_name = untouched.trigger_name
                                and not untouched.rewrites_waiting
                    )

                )

                select
                    cast(date_trunc(
                        '{{ history_partition_unit() }}',
                        least(
                            latest.bound,
                            greatest(
                                coalesce(
                                    timestampadd(millisecond, {{ -skew }}, undecided.oldest),
                                    latest.bound
                                ),
                                latest.bound - interval {{ var('removal_hold_days') }} days
                            )
                        )
                    ) as string)
                from latest
                cross join undecided
            {%- endset -%}
            {%- do current_run().found.update({'removal_bound': run_query(query).rows[0][0]}) -%}
        {%- endif -%}
        {%- set bound = current_run().found.removal_bound -%}
    {%- endif -%}
    {{ "timestamp '" ~ bound ~ "'" if bound else "timestamp '0001-01-01 00:00:00'" }}
{%- endmacro %}

{% macro history_partition_unit() -%}
    {#- The unit of time by which history_ledger is partitioned on expires_at. -#}
    {{ return('day' if var('history_partition') == 'days' else 'hour') }}
{%- endmacro %}

{% macro has_expired(bound=none) -%}
    {#- Whether an entry of history has expired for good. bound: SQL of the expiry before which
        history is removed; default, that of this run. -#}
    expires_at < {{ bound or history_removal_bound() }}
{%- endmacro %}

{% macro has_found_expired() -%}
    {#- Whether entries of history, with those that this run adds, have expired by its end; queried
        once a run, after history_ledger. One that expires exactly at the bound counts as removed
        now, though it is deleted with the next partition. True if it is not known. -#}
    {%- set run = current_run() -%}
    {%- if run and 'expired' not in run.found -%}
        {%- set query -%}
            select {{ number_of_entries() }} from {{ ref('history_ledger') }}
            where expires_at <= {{ history_removal_bound() }}
        {%- endset -%}
        {%- do run.found.update({'expired': run_query(query).rows[0][0] | int}) -%}
    {%- endif -%}
    {{ return(has_found('expired')) }}
{%- endmacro %}

{% macro remove_expired() -%}
    {#- Removes expired entries from this run's branch of history. -#}
    {%- set run = current_run() -%}
    {%- if run and run.publishes and has_found_expired() -%}
        {%- set expired = ref('history_ledger') ~ ' where ' ~ has_expired() -%}
        {%- set query = 'select ' ~ number_of_entries() ~ ' from ' ~ expired -%}
        {%- do run.found.update({'removed': run_query(query).rows[0][0] | int}) -%}
        {%- if run.found.removed -%}
            {%- do run_query('delete from ' ~ expired) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{% macro number_of_entries() -%}
    {#- The number of entries in the selected rows of history_ledger; a row can hold two. -#}
    (count_if(has_processing) + count_if(has_completed))
{%- endmacro %}
