{% macro landed_before(table, until='consumed') -%}
    {#- A relation of a landed table's rows, with landed_file and landed_position: those that
        earlier runs have consumed (until 'consumed'), all that this run has frozen ('landed'), of
        these only the ones that no published run has consumed ('unconsumed'), all that have landed
        when it is read ('now'), or, in a view that outlives the run, all that the last published
        run has consumed when it is read ('judged'). It goes by snapshot, since a clock would miss
        rows that a slow writer commits late; see dbt_exactly_once/landing/landed_rows.py. A unit
        test gives its own rows in place of the table. -#}
    {%- set relation = source('landing', table) -%}
    {#- others of the user's own may have any name, also one that the models use -#}
    {%- set columns = graph.sources['source.exactly_once.landing.' ~ table].columns | join(', ')
        if execute and not is_unit_test() else '*' -%}
    {%- if until == 'now' or not current_run() -%}
        (select {{ columns }}, _file as landed_file, _pos as landed_position from {{ relation }})
    {%- elif until == 'judged' -%}
        {#- by the tag: the snapshot may expire, and changes with each run -#}
        (
            select
                {{ columns }},
                _file as landed_file,
                _pos as landed_position
            from {{ relation }} version as of '{{ adapter.exactly_once.consumed_tag }}'
        )
    {%- elif until == 'unconsumed' -%}
        {{ adapter.exactly_once.landed_rows(table).unconsumed() }}
    {%- elif until == 'consumed' -%}
        {{ adapter.exactly_once.landed_rows(table).until_consumed() }}
    {%- else -%}
        {{ adapter.exactly_once.landed_rows(table).until_landed() }}
    {%- endif -%}
{%- endmacro %}

{% macro in_order_of_commits(rows, table, until) -%}
    {#- Rows of a landed table with the number of the commit that brought them, as landed_commit:
        Iceberg's names of files are not in that order.

        rows: a relation with landed_file; until: how far the table is read, see landed_before. -#}
    {%- set files = '(select data_file.file_path, sequence_number from '
        ~ source('landing', table) ~ '.entries)' if not is_unit_test() -%}
    {%- if files and until != 'now' and current_run() -%}
        {%- set landed = adapter.exactly_once.landed_rows(table) -%}
        {#- with one commit since the last run there is no order to find out -#}
        {%- set files = none if until == 'unconsumed' and landed.commits < 2 else landed.files() -%}
    {%- endif -%}
    (
        select
            landed.*,
            {{ 'files.sequence_number' if files else '0L' }} as landed_commit
        from {{ rows }} as landed
        {% if files -%}
            left join {{ files }} as files on landed.landed_file = files.file_path
        {%- endif %}
    )
{%- endmacro %}
