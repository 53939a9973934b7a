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
        {%- if run_query('select 1 from ' ~ relation ~ ' limit 1').rows | length == 0 -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ seed.name ~ ' is empty: fill ' ~ seed.original_file_path
                ~ ' and run `dbt seed`'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}
