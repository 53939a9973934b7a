{% macro check_boilerplate() %}
    {#- Stop a run in a project that does not let this package load its seeds and write its ledgers:
        dbt would do both in its own way. -#}
    {%- for name in ['incremental', 'seed']
        if ('materialization_' ~ name ~ '_spark') not in context[project_name] -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: this project has no macros/materialization_' ~ name
            ~ '_spark.sql, which lets the package '
            ~ ('load its seeds' if name == 'seed' else 'write its ledgers')
            ~ ': run `exactly-once init`, which adds it'
        ) -%}
    {%- endfor -%}
{% endmacro %}
