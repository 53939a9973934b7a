{% macro check_seed_versions() %}
    {#- Seeds are loaded outside of the transaction: a run refuses one that is empty or is not the
        version of its CSV. Those that this package reads; another project may bring its own. -#}
    {%- set read = [] -%}
    {%- set queries = [] -%}
    {%- for node in graph.nodes.values()
        if node.package_name == 'exactly_once' and node.resource_type in ['model', 'test'] -%}
        {%- do read.extend(node.depends_on.nodes) -%}
    {%- endfor -%}
    {%- for seed_id in read | unique if seed_id.startswith('seed.') -%}
        {%- set seed = graph.nodes[seed_id] -%}
        {%- set relation = seed.schema ~ '.' ~ seed.alias -%}
        {%- set loaded = adapter.exactly_once.property(relation, 'csv-checksum') -%}
        {%- if loaded != seed.checksum.checksum -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ seed.name ~ ' in the lake is not the version of '
                ~ seed.original_file_path ~ ': run `dbt seed`'
            ) -%}
        {%- endif -%}
        {%- do queries.append(
            "select '" ~ seed.name ~ "', '" ~ seed.original_file_path ~ "', count(*) from " ~ relation
        ) -%}
    {%- endfor -%}
    {%- for row in run_query(queries | join('\nunion all\n')).rows if row[2] == 0 -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: seed ' ~ row[0] ~ ' is empty: fill ' ~ row[1] ~ ' and run `dbt seed`'
        ) -%}
    {%- endfor -%}
{% endmacro %}
