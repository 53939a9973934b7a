{% macro oldest_in_queue() -%}
    {#- A literal, so that Iceberg leaves out the partitions that expired before it. -#}
    {%- set oldest = none -%}
    {%- if execute and adapter.exactly_once.run -%}
        {%- set oldest = run_query(
            "select cast(min(received_at) as string) from " ~ ref('trigger_queue')
            ~ " where place = 'QUEUED' and uses_history"
        ).rows[0][0] -%}
    {%- endif -%}
    {%- if oldest is none -%}
        {{ forever() }}
    {%- else -%}
        timestamp '{{ oldest }}'
    {%- endif -%}
{%- endmacro %}
