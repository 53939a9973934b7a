{% macro remove_expired() -%}
    {#- Removes what has expired from this run's branch of history. -#}
    {%- set run = current_run() -%}
    {%- if run and run.publishes -%}
        {%- set expired = ref('document_history') ~ ' where ' ~ has_expired() -%}
        {%- do run.note_removed(
            run_query('select count(*) from ' ~ expired).rows[0][0] | int
        ) -%}
        {%- if run.removed -%}
            {%- do run_query('delete from ' ~ expired) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
