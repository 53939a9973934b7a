{% macro landed_since_last_run(table) -%}
    {#- A relation of the rows of a landed table that no published run has consumed, with landed_file
        and landed_position: by snapshot, since a clock would miss rows that a slow writer commits
        late. dbt_exactly_once/landing/landed_rows.py reads it. -#}
    {%- if current_run() -%}
        {%- do source('landing', table) -%}
        {{ adapter.exactly_once.landed_rows(table).unconsumed() }}
    {%- else -%}
        {{ landed_before(table, until='now') }}
    {%- endif -%}
{%- endmacro %}
