{% macro checked_run() -%}
    {#- The run whose rows a test looks at, as a text literal. Within a run that is the run itself.
        Outside of one (`dbt test`) it is the last published run or, if the test names scratch
        tables (`checked_run(ref('decisions'))`), the run that wrote those: a test that looked
        for rows of its own invocation there would find none and pass.

        In a build, a model waits for a test if it depends on all that the test refers to. With the
        ref to stg_rejected_landings only publication does: until then everything is on the
        branch. -#}
    {%- do ref('stg_rejected_landings') -%}
    {%- if not execute or flags.WHICH not in ['build', 'run', 'test'] or current_run() -%}
        {{ return(sql_text(invocation_id)) }}
    {%- endif -%}
    {%- set record = graph.nodes['model.exactly_once.published_runs'] -%}
    {%- set published = run_query(
        'select max_by(run_id, run_number) from ' ~ last_published('published_runs')
        ~ " where kind = 'run'"
    ).rows[0][0] if adapter.get_relation(none, record.schema, record.alias) -%}
    {%- if not published -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no run was published yet, there is nothing to test: use `dbt build`'
        ) -%}
    {%- endif -%}
    {%- set made_by = [] -%}
    {%- for relation in varargs -%}
        {%- do made_by.append(run_query(
            "select max_by(summary['run-id'], committed_at) from " ~ relation ~ ".snapshots"
        ).rows[0][0]) -%}
    {%- endfor -%}
    {%- if made_by | unique | list | length > 1 or none in made_by -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ varargs | join(', ') ~ ' are of different runs, since the last one '
            ~ 'was cut off: together they prove nothing; start `dbt build` first'
        ) -%}
    {%- endif -%}
    {%- set run = made_by[0] if made_by else published -%}
    {%- set names_ledger = graph.nodes.values()
        | selectattr('unique_id', 'in', model.depends_on.nodes)
        | selectattr('config.materialized', 'equalto', 'incremental') | list -%}
    {%- set news = [] -%}
    {#- what has_news counts, from the tables that the run has left: after a run without news the
        ledgers are as it would have left them -#}
    {%- for name, is_news in {
        'trigger_queue': 'not had_waited',
        'decisions': 'status is not null',
        'in_execution_this_run': 'has_news or ended_by is not null'
    }.items() -%}
        {%- set node = graph.nodes['model.exactly_once.' ~ name] -%}
        {%- do news.append(
            'select 1 from ' ~ api.Relation.create(schema=node.schema, identifier=node.alias)
            ~ ' where for_run_id = ' ~ sql_text(run) ~ ' and (' ~ is_news ~ ')'
        ) -%}
    {%- endfor -%}
    {%- if run != published and names_ledger and run_query(
        'select 1 from ' ~ last_published('published_runs') ~ ' where run_id = ' ~ sql_text(run)
    ).rows | length == 0 and run_query(news | join(' union all ') ~ ' limit 1').rows -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ varargs | join(', ') ~ ' are of a run that was not published, a '
            ~ 'preview or one that has failed: no ledger knows of it; start `dbt build` first'
        ) -%}
    {%- endif -%}
    {{ return(sql_text(run)) }}
{%- endmacro %}

{% macro written_by(run, ledger) -%}
    {#- A relation of the rows that a run has appended to a ledger. Within the run only its own files
        are read: maintenance mixes the rows of runs, so a condition on run_id excludes no file that
        it has rewritten. No file is read if the run knows that it has no rows.
        run: as checked_run returns it. -#}
    {%- set has_none = is_without_rows(ledger.identifier) -%}
    (
        select * from {{ adapter.exactly_once.appended(ledger)
            if current_run() and not has_none else ledger }}
        where run_id = {{ run }}{{ ' and false' if has_none }}
    )
{%- endmacro %}

{% macro removed_before() -%}
    {#- Up to which expiry history has no entries any more when a test looks at it: a run removes
        expired ones after its tests. -#}
    {%- if not execute or current_run() -%}
        {{ return("timestamp '0001-01-01'") }}
    {%- endif -%}
    (select max(history_removed_before) from {{ last_published('published_runs') }})
{%- endmacro %}
