{% macro suspend_trigger(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do command_trigger('SUSPEND', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}


{% macro resume_trigger(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
        {%- do command_trigger('RESUME', trigger_name, reason, by) -%}
    {%- endif -%}
{% endmacro %}


{% macro retire_trigger(trigger_name, reason=none, by=none) %}
    {%- if execute -%}
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
    {%- endif -%}
{% endmacro %}


{% macro command_trigger(command, trigger_name, reason=none, by=none) %}
    {%- do check_trigger(trigger_name) -%}
    {%- do land_command(command, trigger_name, reason, by) -%}
{% endmacro %}


{% macro land_command(command, trigger_name, reason=none, by=none) %}
    {%- do run_query(
        'insert into ' ~ source('landing', 'trigger_commands')
        ~ ' (command_id, trigger_name, command, issued_at, issued_by, reason)'
        ~ ' select uuid(), ' ~ sql_text(trigger_name) ~ ', ' ~ sql_text(command)
        ~ ', current_timestamp(), ' ~ sql_text(by or env_var('USER', 'unknown')) ~ ', '
        ~ sql_text(reason)
    ) -%}
    {%- do log(
        'exactly_once: ' ~ command ~ ' of ' ~ (trigger_name or 'rejected rows') ~ ' has landed'
        ~ ('; the next run follows it' if command != 'LOOKED_AT' else ''),
        info=true,
    ) -%}
{% endmacro %}


{% macro check_trigger(trigger_name) %}
    {#- Stop an operation that names a trigger which the seed does not have; make the landed tables
        where no run has made them yet. -#}
    {%- set known = run_query(
        'select trim(trigger_name) from ' ~ ref('triggers') ~ ' order by 1'
    ).columns[0].values() -%}
    {%- if trigger_name not in known -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
            ~ known | join(', ')
        ) -%}
    {%- endif -%}
    {%- do adapter.exactly_once.describe(graph) -%}
    {%- do adapter.exactly_once.ensure_tables() -%}
{% endmacro %}
