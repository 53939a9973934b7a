{% macro ref() -%}
    {#- dbt's ref, but a small scratch table of this run, or a seed, is read from memory: for a table of
        a few rows, Spark needs ten times as long to plan and read it as to process the rows. -#}
    {{ return(from_memory(builtins.ref(*varargs, **kwargs))) }}
{%- endmacro %}
