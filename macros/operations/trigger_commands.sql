{% macro suspend_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- do land_command('SUSPEND', trigger_name, reason, by) -%}
{% endmacro %}

{% macro resume_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- do land_command('RESUME', trigger_name, reason, by) -%}
{% endmacro %}

{% macro retire_trigger(trigger_name, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_is_made('triggers') -%}
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

{% macro hold_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- do order_hold('HOLD', delivery_id, trigger_name, reason, by) -%}
{% endmacro %}

{% macro release_delivery(delivery_id, trigger_name, reason=none, by=none) %}
    {%- do order_hold('RELEASE', delivery_id, trigger_name, reason, by) -%}
{% endmacro %}

{% macro mark_looked_at(trigger_name=none, reason=none, by=none) %}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- if trigger_name is not none -%}
        {#- documents in doubt stay when their trigger leaves the seed -#}
        {%- do check_trigger(trigger_name, or_in=ref('document_status')) -%}
    {%- endif -%}
    {%- do land_command('LOOKED_AT', trigger_name, reason, by) -%}
{% endmacro %}

{% macro check_trigger(trigger_name, or_in=none) %}
    {#- Stop an operation that names a trigger which the seed does not have. or_in: a ledger; accept
        it if that names the trigger. -#}
    {%- do check_is_made('triggers') -%}
    {%- set seeded -%}
        select trim(trigger_name) from {{ ref('triggers') }} order by 1
    {%- endset -%}
    {%- set named -%}
        select 1 from {{ or_in }} where trigger_name = {{ sql_text(trigger_name) }} limit 1
    {%- endset -%}
    {%- set known = run_query(seeded).columns[0].values() -%}
    {%- if trigger_name | string not in known
        and not (or_in and run_query(named).rows | length > 0) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
            ~ known | join(', ')
        ) -%}
    {%- endif -%}
{% endmacro %}

{% macro order_hold(command, delivery_id, trigger_name, reason, by) %}
    {#- Land an order to HOLD or RELEASE a delivery; stop if it is decided already. -#}
    {%- if not delivery_id -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: name the delivery_id and the trigger_name of a delivery that waits'
        ) -%}
    {%- endif -%}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {#- deliveries wait also when their trigger has left the seed -#}
    {%- do check_trigger(trigger_name, or_in=ref('trigger_states')) -%}
    {%- set decided -%}
        select status from {{ ref('document_status') }}
        where
            delivery_id = {{ sql_text(delivery_id) }}
            and trigger_name = {{ sql_text(trigger_name) }}
    {%- endset -%}
    {%- for row in run_query(decided) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ delivery_id ~ ' was decided in ' ~ trigger_name ~ ' already: '
            ~ row[0] ~ '; only a delivery that waits can be held or released'
        ) -%}
    {%- endfor -%}
    {%- set landing -%}
        insert into {{ source('landing', 'delivery_holds') }}
            (hold_id, delivery_id, trigger_name, command, issued_at, issued_by, reason)
        select
            uuid(), {{ sql_text(delivery_id) }}, {{ sql_text(trigger_name) }},
            {{ sql_text(command) }}, current_timestamp(),
            {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }}
    {%- endset -%}
    {%- do run_query(landing) -%}
    {%- set has_landed = run_query(
        'select 1 from ' ~ source('landing', 'deliveries') ~ ' where delivery_id = '
        ~ landed_delivery_id(sql_text(delivery_id)) ~ ' limit 1'
    ).rows | length > 0 -%}
    {%- do log(
        'exactly_once: ' ~ command ~ ' of ' ~ delivery_id ~ ' in ' ~ trigger_name ~ ' has landed; '
        ~ (
            'the next run follows it' if has_landed
            else 'no delivery of that id has: the run that takes one follows it'
        ),
        info=true,
    ) -%}
{% endmacro %}

{% macro land_command(command, trigger_name, reason, by) %}
    {#- Land a command to a trigger, whether or not the seed has it. trigger_name: none for the rows
        of rejections. -#}
    {%- set landing -%}
        insert into {{ source('landing', 'trigger_commands') }}
            (command_id, trigger_name, command, issued_at, issued_by, reason)
        select
            uuid(), {{ sql_text(trigger_name) }}, {{ sql_text(command) }}, current_timestamp(),
            {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }}
    {%- endset -%}
    {%- do run_query(landing) -%}
    {%- do log(
        'exactly_once: ' ~ command ~ ' of ' ~ (trigger_name or 'rejected rows') ~ ' has landed'
        ~ ('; the next run follows it' if command != 'LOOKED_AT' else ''),
        info=true,
    ) -%}
{% endmacro %}
