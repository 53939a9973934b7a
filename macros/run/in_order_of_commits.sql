{% macro in_order_of_commits(rows, table, until) -%}
    {#- Rows of a landed table with the number of the commit that brought them, as landed_commit:
        Iceberg's names of files are not in that order.

        rows: a relation with landed_file; until: how far the table is read, see landed_before, or
        'unconsumed' for the rows of landed_since_last_run. -#}
    {%- set files = source('landing', table) ~ '.entries' if not is_unit_test() -%}
    {%- if files and until != 'now' and current_run() -%}
        {%- set landed = adapter.exactly_once.landed_rows(table) -%}
        {#- one commit has brought all that no run has consumed -#}
        {%- set files = none if until == 'unconsumed' and landed.commits < 2 else landed.files() -%}
    {%- endif -%}
    (
        select
            landed.*,
            {{ 'files.sequence_number' if files else '0L' }} as landed_commit
        from {{ rows }} as landed
        {% if files -%}
            left join (
                select
                    data_file.file_path,
                    sequence_number
                from {{ files }}
            ) as files
                on landed.landed_file = files.file_path
        {%- endif %}
    )
{%- endmacro %}
