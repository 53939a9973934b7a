{% macro retire_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- set seeded = run_query(
        'select 1 from ' ~ ref('triggers') ~ ' where trim(trigger_name) = ' ~ sql_text(trigger_name)
    ).rows | length -%}
    {%- set known = run_query(
        'select 1 from ' ~ ref('trigger_states') ~ ' where trigger_name = '
        ~ sql_text(trigger_name)
    ).rows | length -%}
    {%- set left = run_query(
        'select (select count(*) from ' ~ ref('waiting_deliveries') ~ ' where trigger_name = '
        ~ sql_text(trigger_name) ~ '), (select count(*) from ' ~ ref('open_documents')
        ~ ' where trigger_name = ' ~ sql_text(trigger_name) ~ ')'
    ).rows[0] -%}
    {%- if seeded or not known -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ trigger_name ~ (
                ' stands in seeds/triggers.csv: take it out there first' if seeded
                else ' is no trigger that a run has known'
            )
        ) -%}
    {%- elif left[0] or left[1] -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ left[0] ~ ' deliveries of ' ~ trigger_name ~ ' wait and '
            ~ left[1] ~ ' of its documents are unfinished: bring it back into '
            ~ 'seeds/triggers.csv until they are done'
        ) -%}
    {%- endif -%}
    {%- do land_command('RETIRE', trigger_name, reason, by) -%}
{% endmacro %}
