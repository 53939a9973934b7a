{% macro queue_keys() -%}
    {#- What this run looks up in history, as note_queue has found it: `oldest`, a literal of the
        earliest received_at, so that Iceberg skips the partitions that expired before it, the
        `number` of the deliveries, and the `hashes` of their keys if they are at most ten, else
        none. Outside of a run these are forever(), none and none. -#}
    {%- set found = current_run().found if current_run() else {} -%}
    {{ return({
        'oldest': "timestamp '" ~ found.oldest_in_queue ~ "'" if found.get('oldest_in_queue')
            else forever(),
        'number': found.get('looked_up'),
        'hashes': found.get('hashes'),
    }) }}
{%- endmacro %}

{% macro note_queue() -%}
    {#- The post-hook of trigger_queue: notes what this run's queue holds, so that later models know
        what to read, and whether they have rows to write (see Run.found and no_rows_where). Stops a
        run in which one key has more deliveries than fit into the array of a chain
        (max_deliveries_per_key). -#}
    {%- if current_run() -%}
        {%- set queue = from_memory(this) -%}
        {#- Spark compares up to ten literals one by one, and looks for more in a set of objects,
            which takes longer than a bitmap. Only a queue that is in memory has few rows: of a
            large one the keys are not collected. -#}
        {%- set most_compared = 10 -%}
        {%- set is_in_memory = queue | string != this | string -%}
        {%- set query -%}
            select
                cast(min(oldest) as string) as oldest,
                coalesce(sum(deliveries), 0) as deliveries,
                coalesce(max(deliveries), 0) as most_of_one_key,
                max_by(trigger_name, deliveries) as trigger_of_most,
                sum(if(deliveries > 1, deliveries, 0)) as in_chains,
                to_json(slice(
                    collect_list(if(deliveries > 1, key_hash, null)), 1, {{ most_literals() + 1 }}
                )) as hashes_of_chains,
                {{ 'to_json(collect_list(key_hash))' if is_in_memory else "'[]'" }} as hashes,
                {% if queue_facts().has_resolvers -%}
                    (
                        select
                            to_json(collect_set(struct(
                                trigger_name, cast(to_date(landed_received_at) as string) as day
                            )))
                        from {{ queue }}
                        where queue_outcome = 'QUEUED' and resolver is not null
                    )
                {%- else -%}
                    '[]'
                {%- endif %} as with_resolver,
                ({{ counts_as_json(queue_counts(queue)) }}) as counts
            from (
                select
                    trigger_name,
                    key_hash,
                    min(received_at) as oldest,
                    count_if(queue_outcome = 'QUEUED') as deliveries
                from {{ queue }}
                -- history is asked for the key of a recovery that is held, see history_matches
                where uses_history and (queue_outcome = 'QUEUED' or origin = 'RECOVERY')
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
                ~ 'time, let its service end the document that they wait for, or raise the '
                ~ 'variable and the memory of Spark (spark.driver.memory, spark.executor.memory)'
            ) -%}
        {%- endif -%}
        {%- set hashes_of_chains = fromjson(found.hashes_of_chains) -%}
        {%- set hashes = fromjson(found.hashes) -%}
        {%- set counts = note_counts('trigger_queue', found.counts) -%}
        {%- set accepted = counts | rejectattr('queue_outcome', 'equalto', 'REJECTED')
            | selectattr('latest', 'defined') -%}
        {%- set left_out = counts | selectattr('queue_outcome', 'in', ['UNROUTED', 'NOT_TAKEN']) -%}
        {%- set with_resolver = fromjson(found.with_resolver) -%}
        {%- do current_run().found.update({
            'oldest_in_queue': found.oldest,
            'looked_up': found.deliveries | int,
            'in_chains': (found.in_chains or 0) | int,
            'hashes_of_chains':
                hashes_of_chains if hashes_of_chains | length <= most_literals() else none,
            'hashes': hashes if hashes | length <= most_compared else none,
            'latest_in_queue': accepted | map(attribute='latest') | max or none,
            'triggers_with_resolver':
                with_resolver | map(attribute='trigger_name') | unique(true) | sort,
            'days_with_resolver': with_resolver | map(attribute='day') | unique | sort,
            'not_taken':
                counts | selectattr('queue_outcome', 'equalto', 'WAITING') | sum('deliveries'),
            'left_out': left_out | sum('deliveries'),
            'rejected':
                counts | selectattr('queue_outcome', 'equalto', 'REJECTED') | sum('deliveries'),
        }) -%}
    {%- endif -%}
{%- endmacro %}
