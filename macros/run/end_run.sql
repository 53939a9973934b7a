{% macro end_run(results) %}
    {#- Ends the run and logs what it did, with what a person should do about each test of
        tests/warnings that has warned in this command. -#}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set variables = adapter.exactly_once.checked_variables(var) -%}
        {#- an ephemeral model that has failed is not among them: those that read it are skipped -#}
        {%- if results | selectattr('node.resource_type', 'equalto', 'model')
            | selectattr('status', 'in', ['error', 'skipped']) | list -%}
            {#- no retention: a model that has failed has yet to read what this run has decided -#}
            {%- do variables.update({
                'keep_statuses_days': none, 'keep_journal_days': none, 'keep_landed_days': none
            }) -%}
            {%- do adapter.exactly_once.say_what_fails() -%}
        {%- endif -%}
        {%- set run = adapter.exactly_once.end(variables) -%}
        {%- if run is not none -%}
            {%- set lines = run.messages or ['nothing was published; the ledgers are as before'] -%}
            {%- set kinds = [] -%}
            {%- for result in results
                if result.status == 'warn'
                and result.node.package_name == 'exactly_once'
                and 'warning' in result.node.tags -%}
                {%- do kinds.append(sql_text(result.node.config.meta.kind)) -%}
            {%- endfor -%}
            {%- if kinds -%}
                {%- set view = graph.nodes['model.exactly_once.things_to_do'] -%}
                {%- set warnings -%}
                    select
                        concat(
                            concat_ws(', ', 'to do', trigger_name), ': ', format_number(documents, 0),
                            ' ', what, '; ', what_to_do
                        )
                    from {{ adapter.exactly_once.evaluated_once(view.schema ~ '.' ~ view.alias) }}
                    where kind in ({{ kinds | join(', ') }})
                    order by kind, trigger_name
                    limit 20
                {%- endset -%}
                {%- set lines = lines + run_query(warnings).columns[0].values() | list -%}
            {%- endif -%}
            {%- set seconds = (modules.datetime.datetime.now(modules.pytz.utc)
                - run_started_at).total_seconds() -%}
            {%- for line in lines + ['took %.0f s' | format(seconds)] -%}
                {%- do log('exactly_once: ' ~ line, info=true) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
