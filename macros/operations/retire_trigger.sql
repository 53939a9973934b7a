{% macro retire_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- set name = sql_text(trigger_name) -%}
    {%- set query -%}
        select
            (
                select count(*) from {{ ref('triggers') }} where trim(trigger_name) = {{ name }}
            ) as seeded,
            (
                select count(*) from {{ ref('trigger_states') }} where trigger_name = {{ name }}
            ) as known,
            (
                select count(*) from {{ ref('waiting_deliveries') }} where trigger_name = {{ name }}
            ) as waiting,
            (
                select count(*) from {{ ref('open_documents') }} where trigger_name = {{ name }}
            ) as unfinished
    {%- endset -%}
    {%- set found = run_query(query).rows[0] -%}
    {%- if found.seeded or not found.known -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ trigger_name ~ (
                ' stands in seeds/triggers.csv: take it out there first' if found.seeded
                else ' is no trigger that a run has known'
            )
        ) -%}
    {%- elif found.waiting or found.unfinished -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ found.waiting ~ ' deliveries of ' ~ trigger_name ~ ' wait and '
            ~ found.unfinished ~ ' of its documents are unfinished: bring it back into '
            ~ 'seeds/triggers.csv until they are done'
        ) -%}
    {%- endif -%}
    {%- do land_command('RETIRE', trigger_name, reason, by) -%}
{% endmacro %}
