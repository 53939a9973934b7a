{% macro check_seeds() %}
    {#- Stops a run before anything is decided, with a line for each wrong value. What was found
        right is not looked at again: the same checks of the same snapshots say the same. -#}
    {%- if current_run() -%}
        {%- set seeds = seed_versions() -%}
        {%- for seed in seeds -%}
            {%- do current_run().seeds.update({seed.relation: seed.snapshot}) -%}
        {%- endfor -%}
        {%- set violations = seed_violations() -%}
        {%- set checks = local_md5(violations ~ tojson(seeds)) -%}
        {%- set problems = [] -%}
        {%- if adapter.exactly_once.noted('seeds-found-right') != checks -%}
            {%- do check_seeds_are_filled(seeds) -%}
            {%- do check_seed_columns(seeds) -%}
            {%- for row in run_query(violations).rows -%}
                {%- do problems.append('seed ' ~ row[0] ~ ', ' ~ row[1] ~ ': ' ~ row[2]) -%}
            {%- endfor -%}
            {%- if not problems -%}
                {%- do adapter.exactly_once.note('seeds-found-right', checks) -%}
            {%- endif -%}
        {%- endif -%}
        {%- do problems.extend(filter_problems()) -%}
        {%- do problems.extend(preview_violations()) -%}
        {%- if problems -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: ' ~ problems | join('\nexactly_once: ')
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


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
