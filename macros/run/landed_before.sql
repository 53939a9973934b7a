{% macro landed_before(table, until='consumed') -%}
    {#- A landed table as earlier runs have consumed it (until 'consumed'), or as this run has
        frozen it (until 'landed'); a unit test gives its own rows in place of the table. -#}
    {%- set relation = source('landing', table) -%}
    {%- set run = adapter.exactly_once.run if execute else none -%}
    {%- if run is none or model.resource_type == 'unit_test' -%}
        {{ relation }}
    {%- else -%}
        {%- set snapshot = run.consumed[table] if until == 'consumed' else run.landed[table] -%}
        {{ relation }} {{ 'where false' if snapshot is none else 'version as of ' ~ snapshot }}
    {%- endif -%}
{%- endmacro %}
