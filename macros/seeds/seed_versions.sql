{% macro seed_versions() %}
    {#- The seeds that this package reads (another project may bring its own), each with its table
        and the snapshot of it. Seeds are loaded outside of the transaction: a run refuses one that
        is not the version of its CSV. -#}
    {%- set read = [] -%}
    {%- set seeds = [] -%}
    {%- for node in graph.nodes.values()
        if node.package_name == 'exactly_once' and node.resource_type in ['model', 'test'] -%}
        {%- do read.extend(node.depends_on.nodes) -%}
    {%- endfor -%}
    {%- for seed_id in read | unique | sort if seed_id.startswith('seed.') -%}
        {%- set seed = graph.nodes[seed_id] -%}
        {%- set relation = seed.schema ~ '.' ~ seed.alias -%}
        {%- set loaded = adapter.exactly_once.properties(relation) -%}
        {%- if loaded and 'csv-checksum' not in loaded -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ seed.name ~ ' was loaded by dbt and not by this package: run '
                ~ '`dbt seed --full-refresh`'
            ) -%}
        {%- endif -%}
        {%- if loaded['csv-checksum'] != seed.checksum.checksum -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: seed ' ~ seed.name ~ ' in the lake is not the version of '
                ~ seed.original_file_path ~ ': run `dbt seed`'
            ) -%}
        {%- endif -%}
        {%- do seeds.append({
            'name': seed.name,
            'file': seed.original_file_path,
            'relation': relation,
            'snapshot': loaded['current-snapshot-id'],
        }) -%}
    {%- endfor -%}
    {{ return(seeds) }}
{% endmacro %}
