{% macro ref() -%}
    {#- dbt's ref, but for the scratch tables of this run that are small: these are read from memory.
        To plan and to read a table of a few rows takes Spark ten times as long as the rows. -#}
    {%- set relation = builtins.ref(*varargs, **kwargs) -%}
    {%- set run = current_run() -%}
    {{ return(run.in_memory.get(relation | string, relation) if run else relation) }}
{%- endmacro %}
