{% macro queue_keys() -%}
    {#- What this run looks up in history: `oldest`, a literal of the earliest received_at, so that
        Iceberg leaves out the partitions that expired before it, and `number` of the deliveries;
        outside of a run nothing is known of either. Stops a run in which one key has more
        deliveries than fit into an array of a chain (max_deliveries_per_key). The run
        remembers what else its queue was found to hold, see bind_queue. -#}
    {%- set keys = {'oldest': forever(), 'number': none} -%}
    {%- if current_run() -%}
        {%- set queue = ref('trigger_queue') -%}
        {%- set row = run_query(
            "select cast(min(oldest) as string), coalesce(sum(deliveries), 0), "
            ~ "coalesce(max(deliveries) > 1, false), cast((" ~ latest_in_queue() ~ ") as string), "
            ~ "coalesce(max(deliveries), 0), max_by(trigger_name, deliveries), "
            ~ "(select to_json(collect_set(struct(trigger_name, "
            ~ "cast(to_date(landed_received_at) as string) as day))) from " ~ queue
            ~ " where place = 'QUEUED' and resolver is not null) "
            ~ "from (select trigger_name, min(received_at) as oldest, "
            ~ "count(*) as deliveries from " ~ queue ~ " where place = 'QUEUED' and "
            ~ "uses_history group by trigger_name, key_hash, key_check)"
        ).rows[0] -%}
        {%- if row[4] > var('max_deliveries_per_key') -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: trigger ' ~ row[5] ~ ' has ' ~ '{:,}'.format(row[4] | int)
                ~ ' deliveries of one key in its queue, which are decided together, and '
                ~ 'max_deliveries_per_key is ' ~ '{:,}'.format(var('max_deliveries_per_key'))
                ~ ': set queue_capacity of the trigger below that, so that runs take fewer at a '
                ~ 'time, or raise the variable and the memory of Spark (spark.driver.memory, '
                ~ 'spark.executor.memory)'
            ) -%}
        {%- endif -%}
        {%- do keys.update({'number': row[1]}) -%}
        {%- do current_run().bind_queue(row[2], row[3], fromjson(row[6])) -%}
        {%- if row[0] is not none -%}
            {%- do keys.update({'oldest': "timestamp '" ~ row[0] ~ "'"}) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(keys) }}
{%- endmacro %}
