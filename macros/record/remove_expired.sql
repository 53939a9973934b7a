{% macro remove_expired() -%}
    {#- Removes what has expired from this run's branch of history. -#}
    {%- set run = current_run() -%}
    {%- if run and run.publishes -%}
        {%- set expired = ref('history_ledger') ~ ' where ' ~ has_expired() -%}
        {%- do run.note_removed(
            run_query('select ' ~ number_of_entries() ~ ' from ' ~ expired).rows[0][0] | int
        ) -%}
        {%- if run.removed -%}
            {%- do run_query('delete from ' ~ expired) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
