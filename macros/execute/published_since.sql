{% macro published_since(ledger, run_number) -%}
    {#- The rows that runs after run_number have published in a ledger that is only appended to;
        all of them where run_number is none. Stands behind publication: main is what was published.

        Reads the files appended between the two snapshots that published_runs names. Where one of
        them has expired it reads the ledger's run_id instead, which costs a scan and loses nothing.
    -#}
    {%- set relation = ref(ledger) -%}
    {%- set runs = ref('published_runs') -%}
    {%- if current_run() and not current_run().publishes -%}
        {#- a preview does nothing behind publication -#}
        (select * from {{ relation }} where false)
    {%- elif run_number is none -%}
        (select * from {{ relation }})
    {%- else -%}
        {%- set first_and_last -%}
            select
                run_number,
                ledger_publishes['{{ ledger }}'] as snapshot
            from {{ runs }}
            where
                kind = 'run'
                and run_number in ({{ run_number }}, (select max(run_number) from {{ runs }}))
            order by run_number
        {%- endset -%}
        {%- set published = run_query(first_and_last).rows -%}
        {%- if published | length == 0 or published[0][0] | int != run_number | int -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: run ' ~ run_number ~ ' is not in ' ~ runs ~ ' although '
                ~ model.name ~ ' has its rows: the ledgers were started over without it. '
                ~ "Start over with `dbt run-operation reset_state --args '{really: true}'`"
            ) -%}
        {%- endif -%}
        {%- set start, end = published[0][1], published[-1][1] -%}
        {%- set ancestors -%}
            select count(*)
            from {{ relation }}.history
            where is_current_ancestor and snapshot_id in ({{ start }}, {{ end }})
        {%- endset -%}
        {%- if start == end -%}
            (select * from {{ relation }} where false)
        {%- elif run_query(ancestors).rows[0][0] | int == 2 -%}
            (
                select *
                from {{ relation }} with (
                    `start-snapshot-id` = '{{ start }}', `end-snapshot-id` = '{{ end }}'
                )
            )
        {%- else -%}
            (
                select *
                from {{ relation }}
                where run_id in (select run_id from {{ runs }} where run_number > {{ run_number }})
            )
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
