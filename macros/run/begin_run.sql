{% macro begin_run() %}
    {#- Begins a run, unless the project or the variables of the command do not allow one. -#}
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
        {%- for name in ['publish', 'preview_all_landed'] if var(name) is not boolean -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: variable ' ~ name ~ ' is ' ~ var(name) ~ ': use true or false'
            ) -%}
        {%- endfor -%}
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
            {
                'run_timeout': var('run_timeout'),
                'publish': var('publish'),
                'preview_all_landed': var('preview_all_landed'),
            },
        ) -%}
    {%- elif execute and flags.WHICH == 'test' -%}
        {%- do adapter.exactly_once.check_lake(graph) -%}
    {%- endif -%}
{% endmacro %}
