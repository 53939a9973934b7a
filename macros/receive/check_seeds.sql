{% macro check_seeds() %}
    {%- if execute and adapter.exactly_once.run -%}
        {%- do check_seed_versions() -%}
        {%- set found = run_query(seed_violations()) -%}
        {%- for row in found.rows -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ row[0] ~ ', ' ~ row[1] ~ ': ' ~ row[2]
            ) -%}
        {%- endfor -%}
        {%- do check_filters() -%}
    {%- endif -%}
{% endmacro %}
