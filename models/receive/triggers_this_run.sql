{%- set resumed = triggers_resumed_by_monitor() -%}
{%- set run = current_run() -%}
{%- do triggers_follow_from_settings(resumed) if run -%}
with

settings as (

    select * from {{ settings_of_this_run() }}

),

states as (

    select * from {{ last_published('trigger_states') }}

),

commands as (

    select
        *,
        struct(issued_at as at, command_id as id) as command_order
    from {{ ref('stg_trigger_commands') }}

),

resumes as (

    select
        trigger_name,
        max(command_order) as command_order,
        -- the sender's clock may be ahead of this run's
        least(max(issued_at), {{ run_clock() }}) as resumed_at
    from commands
    where command = 'RESUME'
    group by trigger_name

),

-- triggers with a RETIRE command that have no waiting delivery and no open document
retired as (

    select distinct commands.trigger_name
    from commands
    left anti join {{ last_published('waiting_deliveries') }} as waiting
        on commands.trigger_name = waiting.trigger_name
    left anti join {{ last_published('open_documents') }} as open_documents
        on commands.trigger_name = open_documents.trigger_name
    where commands.command = 'RETIRE'

),

resumed_by_monitor as (

    select explode(from_json({{ sql_text(tojson(resumed)) }}, 'array<string>')) as trigger_name

),

-- each cause of a suspension is lifted on its own
still_suspending as (

    select published.*
    from (
        select
            trigger_name,
            explode(suspensions) as suspension
        from states
    ) as published
    left join resumes on published.trigger_name = resumes.trigger_name
    left join resumed_by_monitor on published.trigger_name = resumed_by_monitor.trigger_name
    where case published.suspension.cause
        -- lifted by the first run that can read history again
        when 'HISTORY_ERROR' then {{ 'true' if var('history_unavailable') else 'false' }}
        when 'OPERATOR' then resumes.trigger_name is null
        else resumes.trigger_name is null and resumed_by_monitor.trigger_name is null
    end

),

suspended_by_command as (

    select
        commands.trigger_name,
        struct(
            commands.issued_at as since,
            'OPERATOR' as cause,
            commands.issued_by as caused_by,
            commands.reason
        ) as suspension
    from commands
    left join resumes on commands.trigger_name = resumes.trigger_name
    where
        commands.command = 'SUSPEND'
        and coalesce(commands.command_order > resumes.command_order, true)

),

suspended_by_failure as (

    select
        documents.trigger_name,
        struct(
            documents.retry_failed_at as since,
            'RETRY_FAILURE' as cause,
            documents.delivery_id as caused_by,
            documents.retry_failure_message as reason
        ) as suspension
    from {{ ref('in_execution_this_run') }} as documents
    left join resumes on documents.trigger_name = resumes.trigger_name
    where
        documents.is_retry_failure
        and coalesce(documents.retry_failed_at > resumes.command_order.at, true)

),

-- the latest suspension of each cause
suspending as (

    select
        trigger_name,
        suspension.cause,
        max(suspension) as suspension
    from (
        select * from still_suspending
        union all
        select * from suspended_by_command
        union all
        select * from suspended_by_failure
    ) as causes
    group by trigger_name, suspension.cause

),

suspended as (

    select
        trigger_name,
        sort_array(collect_list(suspension), false) as suspensions
    from suspending
    group by trigger_name

),

known as (

    select
        settings.* except (resumed_at),
        states.trigger_name is null as is_first_seen,
        not settings.is_in_seed and retired.trigger_name is not null as is_retired,
        states.history_removed_until,
        coalesce(states.took_documents, false) as took_documents,
        coalesce(states.enabled, false) as was_enabled,
        settings.enabled and settings.is_in_seed as is_enabled,
        states.known_since_run_id,
        map(
            {% for name in trigger_defaults() -%}
                '{{ name }}', cast(settings.{{ name }} as string){{ ',' if not loop.last }}
            {% endfor %}
        ) as settings,
        states.settings as published_settings,
        states.resumed_at as published_resumed_at,
        -- attempts are counted from this time on
        greatest(
            settings.resumed_at,
            resumes.resumed_at,
            if(resumed_by_monitor.trigger_name is null, null, {{ run_clock() }})
        ) as resumed_at,
        if(states.trigger_name is null, settings.start_from, states.takes_from) as takes_from,
        coalesce(states.suspensions, array()) as published_suspensions,
        coalesce(suspended.suspensions, array()) as suspensions,
        suspended.trigger_name is not null as is_suspended
    from settings
    left join states on settings.trigger_name = states.trigger_name
    left join resumes on settings.trigger_name = resumes.trigger_name
    left join suspended on settings.trigger_name = suspended.trigger_name
    left join resumed_by_monitor on settings.trigger_name = resumed_by_monitor.trigger_name
    left join retired on settings.trigger_name = retired.trigger_name

),

final as (

    select
        * except (published_settings, published_resumed_at),
        is_enabled and not is_suspended as takes_documents,
        -- whether its row in trigger_states is still right, unless this run suspends it
        not is_retired
        and is_enabled = was_enabled
        and takes_documents = took_documents
        and suspensions = published_suspensions
        and resumed_at <=> published_resumed_at
        and to_json(settings) <=> to_json(published_settings) as is_as_published,
        -- its waiting rows are rewritten while it takes documents, in the run in which it stops,
        -- and when enabled changes, since their waiting_reason then changes
        took_documents or takes_documents or is_enabled != was_enabled as rewrites_waiting,
        is_first_seen and takes_from is not null
        and {{ 'true' if run and run.number > 1 else 'false' }} as takes_earlier_landings
    from known

)

select * from final
