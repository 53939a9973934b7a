{% macro spark__list_relations_without_caching(schema_relation) -%}
    {#- One listing of tables and one of views, instead of a describe per table. The adapter does
        not see the views of a v2 catalog at all, and would leave them out of the docs. -#}
    {%- set listed = [] -%}
    {%- set views = run_query('show views in ' ~ schema_relation) -%}
    {%- set tables = run_query('show tables in ' ~ schema_relation) -%}
    {%- set view_names = views.columns[1].values() if views.rows | length else [] -%}
    {%- for row in tables if not row[2] and row[1] not in view_names -%}
        {%- do listed.append((row[0], row[1], false, 'Type: MANAGED\nProvider: iceberg')) -%}
    {%- endfor -%}
    {%- for row in views if not row[2] -%}
        {%- do listed.append((row[0], row[1], false, 'Type: VIEW')) -%}
    {%- endfor -%}
    {{ return(listed) }}
{%- endmacro %}
