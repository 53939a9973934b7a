{% macro queue_keys() -%}
    {#- What this run looks up in history: `oldest`, a literal of the earliest received_at, so that
        Iceberg leaves out the partitions that expired before it, and `number` of the deliveries;
        outside of a run nothing is known of either. -#}
    {%- set keys = {'oldest': forever(), 'number': none} -%}
    {%- if execute and adapter.exactly_once.run -%}
        {%- set row = run_query(
            "select cast(min(received_at) as string), count(*) from " ~ ref('trigger_queue')
            ~ " where place = 'QUEUED' and uses_history"
        ).rows[0] -%}
        {%- do keys.update({'number': row[1]}) -%}
        {%- if row[0] is not none -%}
            {%- do keys.update({'oldest': "timestamp '" ~ row[0] ~ "'"}) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(keys) }}
{%- endmacro %}
