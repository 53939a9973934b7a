{% macro begin_run() %}
    {#- Begins a run, or stops if the project or the variables of the command do not allow one. -#}
    {%- do decision_rules() -%}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {#- in a project without these dbt would load seeds and write ledgers in its own way -#}
        {%- for name in ['incremental', 'seed']
            if ('materialization_' ~ name ~ '_spark') not in context[project_name] -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: this project has no macros/materialization_' ~ name
                ~ '_spark.sql, which lets the package '
                ~ ('load its seeds' if name == 'seed' else 'write its ledgers')
                ~ ': run `exactly-once init`, which adds it'
            ) -%}
        {%- endfor -%}
        {%- set variables = adapter.exactly_once.checked_variables(var) -%}
        {%- for name in ['preview_triggers', 'preview_all_landed'] if var('publish') and var(name) -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: ' ~ name ~ " is for a preview: add publish: false to --vars, or change "
                ~ 'seeds/triggers.csv to mean it'
            ) -%}
        {%- endfor -%}
        {%- set run = adapter.exactly_once.begin(
            graph,
            selected_resources,
            invocation_id,
            run_started_at,
            variables,
        ) -%}
    {%- elif execute and flags.WHICH == 'test' -%}
        {%- do adapter.exactly_once.check_lake(graph) -%}
    {%- endif -%}
{% endmacro %}
