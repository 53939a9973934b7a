{% macro publish_run() %}
    {%- if execute -%}
        {%- do adapter.exactly_once.check_seeds_stayed() -%}
        {%- set query -%}
            select
                (select count_if(not had_waited) from {{ ref('trigger_queue') }})
                + (select count_if(is_decided) from {{ ref('decisions') }})
                + (
                    select count_if(has_news or ended_by is not null)
                    from {{ ref('documents_in_execution') }}
                )
                + (
                    select count_if(suspensions != published_suspensions)
                    from {{ ref('current_triggers') }}
                ) as news,
                ({{ run_findings() }}) as findings
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- do adapter.exactly_once.publish(found.news | int, fromjson(found.findings)) -%}
        {%- if var('preview_all_landed') -%}
            {%- do current_run().said.extend(
                run_query(preview_differences()).columns[0].values()
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


{% macro run_findings() -%}
    {#- What a person should hear of at the end of a run, as one JSON array of texts: causes of
        doubt, triggers that are suspended, and count as the only method where it is not given. -#}
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
                -- a rule that was decided by the key says what is wrong with it
                if(decided_by = 'ID', key_state, null) as key_state,
                cast(null as string) as resolver_result,
                cast(null as string) as message,
                count(*) as documents
            from {{ ref('decisions') }}
            where status = 'IN_DOUBT'
            group by trigger_name, rule_id, if(decided_by = 'ID', key_state, null)
            order by documents desc
            limit 20
        ) as doubts
        union all
        -- landing keeps these apart: they are not of what the run has taken
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
                'warning, ', trigger_name, ': ', format_number(count(*), 0), ' taken for NEW ',
                'because their transport does not count deliveries; use_history: true, or a ',
                'resolver, would tell copies'
            )
        from {{ ref('decisions') }}
        where decided_by = 'COUNT' and redelivery = 'UNDEFINED'
        group by trigger_name
        {% if current_run().moves_event_time(var('event_time_leap_ms')) -%}
            union all
            {{ event_time_leap() | indent(12) }}
        {%- endif %}
    )
{%- endmacro %}


{% macro event_time_leap() -%}
    {#- A query of one line that names the delivery by which this run moves event time further beyond
        all others than event_time_leap_ms; of none where there is no such delivery. Event time that
        was moved by mistake leaves later deliveries in doubt, since history is removed by it. -#}
    {%- set run = current_run() -%}
    {%- set earlier = "timestamp '" ~ run.greatest_received_at ~ "'"
        if run.greatest_received_at else 'cast(null as timestamp)' %}
    select
        concat(
            'warning, delivery ', delivery_id, ' moves event time from ', before, ' to ', now,
            ', beyond all others: if its received_at, ', received_at, ', is wrong, delete from ',
            {{ sql_text(source('landing', 'deliveries') | string) }}, ' where delivery_id = ',
            '\'', delivery_id, '\' and event time follows in the next run'
        ) as line
    from (
        select
            max_by(landed_delivery_id, landed_received_at) as delivery_id,
            max(landed_received_at) as received_at,
            least(max(landed_received_at), {{ run_clock() }}) as now,
            least(
                greatest(
                    {{ earlier }},
                    if(count(*) = 2, min(landed_received_at), null)
                ),
                {{ run_clock() }}
            ) as before
        from (
            select
                landed_delivery_id,
                landed_received_at
            from {{ ref('trigger_queue') }}
            where place != 'REJECTED'
            group by landed_delivery_id, landed_received_at
            order by landed_received_at desc
            limit 2
        )
    )
    where now > {{ plus_ms('before', var('event_time_leap_ms')) }}
{%- endmacro %}


{% macro preview_differences() -%}
    {#- What a preview of all that has landed would have decided otherwise than the published runs,
        as texts. Stands behind the preview, where document_status is what was published. -#}
    select
        concat(
            published.trigger_name, ': ', format_number(count(*), 0), ' ', published.status,
            ' would be ', coalesce(previewed.status, 'waiting')
        ) as line
    from {{ ref('document_status') }} as published
    inner join {{ ref('decisions') }} as previewed
        on
            published.delivery_id = previewed.delivery_id
            and published.trigger_name = previewed.trigger_name
    where published.status != coalesce(previewed.status, 'waiting')
    group by published.trigger_name, published.status, previewed.status
    order by published.trigger_name, count(*) desc
{%- endmacro %}
