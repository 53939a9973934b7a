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
                cast(min(if(of_key > 0, oldest, null)) as string) as oldest,
                coalesce(sum(of_key), 0) as deliveries,
                coalesce(max(of_key), 0) as most_of_one_key,
                max_by(trigger_name, of_key) as trigger_of_most,
                sum(if(of_key > 1, of_key, 0)) as in_chains,
                to_json(slice(
                    collect_list(if(of_key > 1, key_hash, null)), 1, {{ most_literals() + 1 }}
                )) as hashes,
                cast(max(latest) as string) as latest,
                coalesce(sum(if(queue_outcome = 'WAITING', deliveries, 0)), 0) as not_taken,
                {% if current_run().queue_facts.get('has_resolver', true) -%}
                    (
                        select
                            to_json(collect_set(struct(
                                trigger_name, cast(to_date(landed_received_at) as string) as day
                            )))
                        from {{ ref('trigger_queue') }}
                        where queue_outcome = 'QUEUED' and resolver is not null
                    ) as with_resolver
                {%- else -%}
                    '[]' as with_resolver
                {%- endif %}
            from (
                select
                    *,
                    -- history is looked up for what has a hash
                    if(queue_outcome = 'QUEUED' and key_hash is not null, deliveries, null)
                        as of_key
                from (
                    select
                        trigger_name,
                        queue_outcome,
                        key_hash,
                        min(received_at) as oldest,
                        max(if(queue_outcome != 'REJECTED', landed_received_at, null)) as latest,
                        count(*) as deliveries
                    from {{ ref('trigger_queue') }}
                    group by trigger_name, queue_outcome, key_hash, key_check
                )
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
