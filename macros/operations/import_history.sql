{% macro import_history(trigger_name, relation, key, processed_at, dry_run=false) %}
    {#- Adds to a trigger's history what was processed before by something else, so that copies of
        it are duplicates. key and processed_at are columns of the relation, or SQL over them. -#}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- if not load_relation(ref('trigger_settings')) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no trigger has settings yet: start `dbt build` once'
        ) -%}
    {%- endif -%}
    {%- set never_looks = run_query(
        'select 1 from ' ~ ref('trigger_settings') ~ ' where trigger_name = '
        ~ sql_text(trigger_name) ~ ' and not (detect_duplicates and use_history)'
    ).rows -%}
    {%- if never_looks -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ trigger_name ~ ' never looks into history: set detect_duplicates '
            ~ 'and use_history in seeds/triggers.csv first'
        ) -%}
    {%- endif -%}
    {%- for name, text in [('key', key), ('processed_at', processed_at)] -%}
        {%- set problem = adapter.exactly_once.expression_problem(text, relation, false) -%}
        {%- if problem -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: import_history cannot read ' ~ name ~ ' ' ~ text ~ ' of '
                ~ relation ~ ': ' ~ problem
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set documents = processed_elsewhere(
        trigger_name,
        relation,
        adapter.exactly_once.filter_sql(key),
        adapter.exactly_once.filter_sql(processed_at)
    ) -%}
    {%- for line in adapter.exactly_once.import_history(
        graph, invocation_id, var('run_timeout'), documents, imported_entries(documents), dry_run
    ) -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}
