{% macro landed_before(table, until='consumed') -%}
    {#- A relation of a landed table's rows, with landed_file and landed_position: those that earlier
        runs have consumed (until 'consumed'), all that this run has frozen ('landed'), or all that
        have landed when it is read ('now'). A unit test gives its own rows in place of the table. -#}
    {%- set relation = source('landing', table) -%}
    {%- if until == 'now' or not current_run() -%}
        (select *, _file as landed_file, _pos as landed_position from {{ relation }})
    {%- else -%}
        {%- set landed = adapter.exactly_once.landed_rows(table) -%}
        {{ landed.until_consumed() if until == 'consumed' else landed.until_landed() }}
    {%- endif -%}
{%- endmacro %}
