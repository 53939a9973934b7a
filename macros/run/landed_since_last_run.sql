{% macro landed_since_last_run(table) -%}
    {#- The files that were appended to a landed table between the snapshot that the last published
        run consumed and the one this run has frozen: by snapshot, since a clock would miss rows
        that a slow writer commits late. -#}
    {%- set relation = source('landing', table) -%}
    {%- set run = adapter.exactly_once.run if execute else none -%}
    {%- if run is none -%}
        {{ relation }}
    {%- elif run.landed[table] is none or run.landed[table] == run.consumed[table] -%}
        {{ relation }} where false
    {%- elif run.consumed[table] is none -%}
        {{ relation }} version as of {{ run.landed[table] }}
    {%- else -%}
        {{ relation }} with (
            `start-snapshot-id` = '{{ run.consumed[table] }}',
            `end-snapshot-id` = '{{ run.landed[table] }}'
        )
    {%- endif -%}
{%- endmacro %}
