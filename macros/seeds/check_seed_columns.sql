{% macro check_seed_columns(seeds) %}
    {#- Refuses a triggers.csv without one of its columns, which a later version of this project may
        have added. seeds: as seed_versions gives them. -#}
    {%- for seed in seeds if seed.name == 'triggers' -%}
        {%- set present = [] -%}
        {%- for row in run_query('describe table ' ~ seed.relation) -%}
            {%- do present.append(row[0]) -%}
        {%- endfor -%}
        {%- set lacking = trigger_defaults().keys() | reject('in', present) | list -%}
        {%- if lacking -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: ' ~ seed.file ~ ' has no column ' ~ lacking | join(', ')
                ~ ': add it, a blank means the default, and run `dbt seed`'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}
