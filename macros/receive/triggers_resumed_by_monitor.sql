{% macro triggers_resumed_by_monitor() -%}
    {#- The names of triggers that an error of a resolver or service has suspended and whose
        resource monitor answers that the resource is available again. That lifts this cause of
        suspension and no other. A monitor is asked for such triggers only, once a run. If it fails
        or answers neither true nor false, that is logged and the trigger stays suspended. -#}
    {%- set resumed = [] -%}
    {%- if current_run()
        and adapter.exactly_once.hook_names('resource_monitor') -%}
        {%- set suspended -%}
            select
                settings.resource_monitor,
                states.trigger_name
            from {{ last_published('trigger_states') }} as states
            inner join {{ ref('trigger_settings') }} as settings
                on states.trigger_name = settings.trigger_name
            where
                settings.resource_monitor is not null
                and exists(
                    states.suspensions, s -> s.cause in ('RESOLVER_ERROR', 'RETRY_FAILURE')
                )
            order by settings.resource_monitor, states.trigger_name
        {%- endset -%}
        {%- for monitor, rows in run_query(suspended).rows 
            | groupby(0, case_sensitive=true) -%}
            {%- set asked -%}
                select answer.is_available, answer.message
                from (select ask_resource_monitor({{ sql_text(monitor) }}) as answer)
            {%- endset -%}
            {%- set answer = run_query(asked).rows[0] -%}
            {%- if answer[0] -%}
                {%- do resumed.extend(rows | map(attribute=1)) -%}
            {%- else -%}
                {%- do log(
                    'exactly_once: ' ~ rows | map(attribute=1) | join(', ')
                    ~ ' stays suspended: resource monitor ' ~ monitor ~ ' '
                    ~ (answer[1] or 'answers that it is not available'),
                    info=true,
                ) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(resumed) }}
{%- endmacro %}

{% macro triggers_follow_from_settings(resumed) -%}
    {#- Called by triggers_this_run: without commands and failures of services its rows follow from
        the settings and from what the last run published, see rows_follow_from. resumed: the names
        of triggers that monitors have resumed. -#}
    {%- set run = current_run() -%}
    {%- do rows_follow_from(
        [run.rows_follow_from.trigger_settings, var('history_unavailable'), run.number > 1],
        run.publishes
        and not var('preview_triggers')
        and not resumed
        and not run.has_landed('trigger_commands')
        and (
            not run.has_landed('trigger_executions')
            or is_empty(ref('in_execution_this_run'))
        ),
    ) -%}
{%- endmacro %}
