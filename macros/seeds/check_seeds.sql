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
