{% macro queue_keys() -%}
    {#- What this run looks up in history: `oldest`, a literal of the earliest received_at, so that
        Iceberg leaves out the partitions that expired before it, and `number` of the deliveries;
        outside of a run nothing is known of either. Stops a run in which one key has more
        deliveries than fit into an array of a chain (max_deliveries_per_key). The run
        remembers what else its queue was found to hold, see bind_queue. -#}
    {%- set keys = {'oldest': forever(), 'number': none} -%}
    {%- if current_run() -%}
        {%- set query -%}
            select
                cast(min(oldest) as string) as oldest,
                coalesce(sum(deliveries), 0) as deliveries,
                coalesce(max(deliveries), 0) as most_of_one_key,
                max_by(trigger_name, deliveries) as trigger_of_most,
                sum(if(deliveries > 1, deliveries, 0)) as in_chains,
                to_json(slice(
                    collect_list(if(deliveries > 1, key_hash, null)), 1, {{ most_literals() + 1 }}
                )) as hashes,
                cast(({{ latest_in_queue() }}) as string) as latest,
                (
                    select
                        to_json(collect_set(struct(
                            trigger_name, cast(to_date(landed_received_at) as string) as day
                        )))
                    from {{ ref('trigger_queue') }}
                    where queue_outcome = 'QUEUED' and resolver is not null
                ) as with_resolver,
                (
                    select count_if(queue_outcome = 'WAITING') from {{ ref('trigger_queue') }}
                ) as not_taken
            from (
                select
                    trigger_name,
                    key_hash,
                    min(received_at) as oldest,
                    count(*) as deliveries
                from {{ ref('trigger_queue') }}
                where queue_outcome = 'QUEUED' and uses_history
                group by trigger_name, key_hash, key_check
            )
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- if found.most_of_one_key > var('max_deliveries_per_key') -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: trigger ' ~ found.trigger_of_most ~ ' has '
                ~ '{:,}'.format(found.most_of_one_key | int)
                ~ ' deliveries of one key in its queue, which are decided together, and '
                ~ 'max_deliveries_per_key is ' ~ '{:,}'.format(var('max_deliveries_per_key'))
                ~ ': set queue_capacity of the trigger below that, so that runs take fewer at a '
                ~ 'time, or raise the variable and the memory of Spark (spark.driver.memory, '
                ~ 'spark.executor.memory)'
            ) -%}
        {%- endif -%}
        {%- do keys.update({'number': found.deliveries}) -%}
        {%- set hashes = fromjson(found.hashes) -%}
        {%- do current_run().bind_queue(
            found.in_chains or 0,
            hashes if hashes | length <= most_literals() else none,
            found.latest,
            fromjson(found.with_resolver),
        ) -%}
        {%- do current_run().found.update({'not_taken': found.not_taken}) -%}
        {%- if found.oldest is not none -%}
            {%- do keys.update({'oldest': "timestamp '" ~ found.oldest ~ "'"}) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(keys) }}
{%- endmacro %}
