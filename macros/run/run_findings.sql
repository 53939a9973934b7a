{% macro run_findings() -%}
    {#- The lines on what a person should know at the end of a run, for instance causes of doubt,
        suspended triggers, and triggers that need a count and get none. Only those are asked for
        that this run may have. -#}
    {%- set run = current_run() -%}
    {%- set asked = [] -%}
    {%- if has_decided('IN_DOUBT') -%}
        {%- do asked.append(doubts_found()) -%}
    {%- endif -%}
    {%- if run.has_landed('rejected_landings') -%}
        {%- do asked.append(rejections_found()) -%}
    {%- endif -%}
    {%- if queue_facts().has_suspended or not is_without_rows('trigger_states') -%}
        {%- do asked.append(suspensions_found()) -%}
    {%- endif -%}
    {%- if has_decided('NEW', 'COUNT') -%}
        {%- do asked.append(uncounted_found()) -%}
    {%- endif -%}
    {%- if run.moves_event_time(var('event_time_leap_ms')) -%}
        {%- do asked.append(event_time_leap()) -%}
    {%- endif -%}
    {{ return(
        run_query(asked | join('\nunion all\n')).columns[0].values() | list if asked else []
    ) }}
{%- endmacro %}

{% macro doubts_found() -%}
    {#- A query of a line for each trigger and rule that have left documents in doubt. -#}
    select
        concat(
            'in doubt, ', trigger_name, ': ', format_number(documents, 0), ' by rule ', rule_id,
            ', ', {{ rule_in_words('doubts') }}
        ) as line
    from (
        select
            trigger_name,
            rule_id,
            -- for a rule about the key: what is wrong with the key
            if(decided_by = 'ID', key_state, null) as key_state,
            cast(null as string) as resolver_result,
            cast(null as string) as message,
            sum(documents) as documents
        from {{ decision_counts() }}
        where status = 'IN_DOUBT'
        group by trigger_name, rule_id, if(decided_by = 'ID', key_state, null)
        order by documents desc
        limit 20
    ) as doubts
{%- endmacro %}

{% macro rejections_found() -%}
    {#- A query of a line for each table whose rows landing has rejected: they are not part of what
        the run took. -#}
    select
        concat(
            'rejected at landing: ', format_number(sum(landings), 0), ' rows for ', table_name,
            ' (', array_join(array_sort(collect_list(concat(reason, ' ', landings))), ', '),
            '), see rejections'
        ) as line
    from (
        select
            table_name,
            reason,
            count(*) as landings
        from {{ ref('stg_rejected_landings') }}
        where reason != 'REPEATED'
        group by table_name, reason
    )
    group by table_name
{%- endmacro %}

{% macro suspensions_found() -%}
    {#- A query of a line for each cause that suspends a trigger at the end of this run. -#}
    select
        concat_ws(
            ': ',
            concat('suspended, ', trigger_name),
            suspension.cause,
            suspension.caused_by,
            suspension.reason
        ) as line
    from (
        select
            trigger_name,
            explode(suspensions) as suspension
        from {{ ref('trigger_states') }}
    )
{%- endmacro %}

{% macro uncounted_found() -%}
    {#- A query of a line for each trigger that relies on a count and has got deliveries without. -#}
    select
        concat(
            'warning, ', trigger_name, ': ', format_number(sum(documents), 0), ' taken for NEW ',
            'because they came without a count of deliveries; use_history: true, or a ',
            'resolver, would recognize copies'
        ) as line
    from {{ decision_counts() }}
    where decided_by = 'COUNT' and redelivery = 'UNDEFINED'
    group by trigger_name
{%- endmacro %}
