{% macro run_findings() -%}
    {#- What a person should know at the end of a run, as one JSON array of texts, for instance
        causes of doubt, suspended triggers, and triggers that need a count and get none. -#}
    select to_json(collect_list(line))
    from (
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
        union all
        -- rejected by landing, so not part of what the run took
        select
            concat(
                'rejected at landing: ', format_number(sum(landings), 0), ' rows for ', table_name,
                ' (', array_join(array_sort(collect_list(concat(reason, ' ', landings))), ', '),
                '), see rejections'
            )
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
        union all
        select
            concat_ws(
                ': ',
                concat('suspended, ', trigger_name),
                suspension.cause,
                suspension.caused_by,
                suspension.reason
            )
        from (
            select
                trigger_name,
                explode(suspensions) as suspension
            from {{ ref('trigger_states') }}
        )
        union all
        select
            concat(
                'warning, ', trigger_name, ': ', format_number(sum(documents), 0), ' taken for NEW ',
                'because they came without a count of deliveries; use_history: true, or a ',
                'resolver, would recognize copies'
            )
        from {{ decision_counts() }}
        where decided_by = 'COUNT' and redelivery = 'UNDEFINED'
        group by trigger_name
        {% if current_run().moves_event_time(var('event_time_leap_ms')) -%}
            union all
            {{ event_time_leap() | indent(12) }}
        {%- endif %}
    )
{%- endmacro %}
