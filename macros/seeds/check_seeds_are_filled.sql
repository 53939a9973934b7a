{% macro check_seeds_are_filled(seeds) %}
    {#- Refuses a seed without rows. seeds: as seed_versions gives them. -#}
    {%- set counts = [] -%}
    {%- for seed in seeds -%}
        {%- do counts.append(
            "select '" ~ seed.name ~ "', '" ~ seed.file ~ "', count(*) from " ~ seed.relation
        ) -%}
    {%- endfor -%}
    {%- for row in run_query(counts | join('\nunion all\n')).rows if row[2] == 0 -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: seed ' ~ row[0] ~ ' is empty: fill ' ~ row[1] ~ ' and run `dbt seed`'
        ) -%}
    {%- endfor -%}
{% endmacro %}
