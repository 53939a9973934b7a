{% macro check_seed_versions() %}
    {#- Seeds are loaded outside of the transaction: a run refuses one that is empty or is not the
        version of its CSV. -#}
    {%- set seeds = graph.nodes.values() | selectattr('resource_type', 'equalto', 'seed')
        | selectattr('package_name', 'equalto', 'exactly_once') | list -%}
    {%- for seed in seeds -%}
        {%- set relation = seed.schema ~ '.' ~ seed.alias -%}
        {%- set loaded = adapter.exactly_once.property(relation, 'csv-checksum') -%}
        {%- if loaded != seed.checksum.checksum -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ seed.name ~ ' in the lake is not the version of '
                ~ seed.original_file_path ~ ': run `dbt seed`'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set queries = [] -%}
    {%- for seed in seeds -%}
        {%- do queries.append(
            "select '" ~ seed.name ~ "', '" ~ seed.original_file_path ~ "', count(*) from "
            ~ seed.schema ~ '.' ~ seed.alias
        ) -%}
    {%- endfor -%}
    {%- for row in run_query(queries | join('\nunion all\n')).rows if row[2] == 0 -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: seed ' ~ row[0] ~ ' is empty: fill ' ~ row[1] ~ ' and run `dbt seed`'
        ) -%}
    {%- endfor -%}
{% endmacro %}
