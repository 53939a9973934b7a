{% macro check_seeds() %}
    {#- Stops a run before anything is decided, with a line for each wrong value. -#}
    {%- if execute and adapter.exactly_once.run -%}
        {%- do check_seed_versions() -%}
        {%- set problems = [] -%}
        {%- for row in run_query(seed_violations()).rows -%}
            {%- do problems.append('seed ' ~ row[0] ~ ', ' ~ row[1] ~ ': ' ~ row[2]) -%}
        {%- endfor -%}
        {%- do problems.extend(filter_problems()) -%}
        {%- do problems.extend(preview_violations()) -%}
        {%- if problems -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: ' ~ problems | join('\nexactly_once: ')
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
