{#- Executions that land before the decision are applied with it: those since the last run, and if
    the journal has earlier ones (EARLY), all that have landed. -#}
{%- do no_rows_where(not has_found('opened')) -%}
{%- set remembered = false -%}
{%- if current_run() and has_found('opened') -%}
    {%- set early -%}
        (select delivery_id, trigger_name from {{ last_published('journal_entries') }}
        where event = 'EARLY')
    {%- endset -%}
    {#- the decisions are read only if the journal has EARLY entries: most have none -#}
    {%- set remembered = run_query('select 1 from ' ~ early ~ ' limit 1').rows | length > 0
        and run_query(
            'select 1 from ' ~ early ~ ' left semi join (select * from ' ~ ref('decisions')
            ~ ' where is_decided) using (delivery_id, trigger_name) limit 1'
        ).rows | length > 0 -%}
{%- endif -%}
with

opened as (

    select * from {{ ref('decisions') }}
    where {{ is_executed() }} and service is not null

),

undecided as (

    select * from {{ ref('decisions') }}
    where not is_decided

),

settings as (

    select * from {{ ref('triggers_this_run') }}

),

{% set landed = landed_before('trigger_executions', until='landed')
    if remembered else ref('stg_trigger_executions') -%}
executions as (

    select executions.*
    from (select * from {{ landed }}) as executions
    left semi join opened
        on
            executions.delivery_id = opened.delivery_id
            and executions.trigger_name = opened.trigger_name

),

reported as (

    {{ reported_by_services('executions', 'settings') | indent(4) }}

),

brought_up_to_date as (

    select
        opened.* except (key_hash, key_check, started_at, expires_at),
        -- hashes are null if the document adds no entries, times also until its service has begun
        if(opened.adds_to_history, opened.key_hash, null) as key_hash,
        if(opened.adds_to_history, opened.key_check, null) as key_check,
        if(
            opened.adds_to_history,
            {{ feed_time('opened.received_at', 'opened.landed_at', 'reported.began_at') }},
            null
        ) as started_at,
        if(
            opened.adds_to_history,
            {{ feed_time('opened.received_at', 'opened.landed_at', 'reported.service_ended_at') }},
            null
        ) as service_ended_at,
        reported.delivery_id is not null as begun,
        coalesce(reported.attempts, 0) as attempts,
        reported.last_event,
        reported.last_event_at,
        reported.last_started_at,
        reported.last_message,
        reported.retry_failure,
        awaited.until as awaited_until,
        {{ suspended_by_service('reported', 'settings.on_retry_failure') | indent(8) }}
            as is_retry_failure,
        {{ ended_by_service('reported', 'settings.on_retry_failure') }} as ended_by,
        opened.for_run_id as run_id
    from opened
    inner join settings on opened.trigger_name = settings.trigger_name
    left join {{ awaited_until('undecided') }} as awaited
        on
            opened.adds_to_history
            and opened.trigger_name = awaited.trigger_name
            and opened.key_hash = awaited.key_hash
    left join reported
        on
            opened.delivery_id = reported.delivery_id
            and opened.trigger_name = reported.trigger_name

),

final as (

    select
        * except (awaited_until),
        {{ expiry('started_at', 'history_time_to_live_ms') }} as expires_at,
        greatest(
            {{ expiry('started_at', 'history_time_to_live_ms') }}, service_ended_at, awaited_until
        ) as completed_expires_at
    from brought_up_to_date

)

select * from final
