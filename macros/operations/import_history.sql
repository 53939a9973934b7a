{% macro import_history(trigger_name, relation, key, processed_at, dry_run=false) %}
    {#- Adds to a trigger's history what was processed before by something else, so that copies of
        it are duplicates. key and processed_at are columns of the relation, or SQL over them. -#}
    {%- if execute -%}
        {%- do check_trigger(trigger_name) -%}
        {%- if load_relation(ref('trigger_settings')) is none -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: no run is published in schema ' ~ target.schema ~ ', so there is no '
                ~ 'history to add to: start `dbt build` once, before anything lands'
            ) -%}
        {%- endif -%}
        {%- set uses_history = run_query(
            'select detect_duplicates and use_history from ' ~ ref('trigger_settings')
            ~ ' where trigger_name = ' ~ sql_text(trigger_name)
        ).rows[0][0] -%}
        {%- if not uses_history -%}
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
        {%- set documents = processed_elsewhere(trigger_name, relation, key, processed_at) -%}
        {%- for line in adapter.exactly_once.import_history(
            graph, invocation_id, var('run_timeout'), documents, imported_entries(documents), dry_run
        ) -%}
            {%- do log('exactly_once: ' ~ line, info=true) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
