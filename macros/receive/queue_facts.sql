{% macro queue_facts() -%}
    {#- Facts that the SQL of trigger_queue and of its parts depends on. checked_deliveries asks for
        them once a run, before that SQL is rendered.
        - Triggers: whether any has a capacity, whether all are as the last run published them,
          whether any takes deliveries that earlier runs consumed, and the key expressions.
        - Holds: whether an operator has ever held a delivery.
        - Deliveries that return to the queue: whether any was decided before, and the days on
          which they were received: only these days of the landed table are read, in a run.
        - Deliveries that landed since the last run: their days, and whether any landed before. -#}
    {%- set run = current_run() -%}
    {%- if run and run.queue_facts -%}
        {{ return(run.queue_facts) }}
    {%- endif -%}
    {%- set facts = {
        'has_capacity': true,
        'triggers_are_as_published': false,
        'takes_earlier': true,
        'key_expressions': [],
        'has_holds': true,
        'has_repeated': true,
        'has_decided': true,
        'returning_days': none,
        'landed_days': none,
    } -%}
    {%- if run -%}
        {%- set asked -%}
            select
                triggers.*,
                (
                    select to_json(collect_list(struct(day, has_decided)))
                    from (
                        select
                            cast(to_date(landed_received_at) as string) as day,
                            bool_or(origin != 'LANDED') as has_decided
                        from {{ ref('returning_this_run') }}
                        group by day
                    )
                ) as returning,
                (
                    select
                        to_json(struct(
                            sort_array(collect_set(cast(to_date(received_at) as string))) as days,
                            if(
                                bool_and(delivery_id rlike '^[A-Za-z0-9 _.:/@#+=,-]{1,200}$'),
                                struct(min(delivery_id) as first, max(delivery_id) as last),
                                null
                            ) as ids
                        ))
                    from {{ ref('stg_deliveries') }}
                ) as landed,
                (
                    select to_json(collect_list(xxhash64(delivery_id)))
                    from (
                        select delivery_id
                        from {{ ref('stg_deliveries') }}
                        limit {{ most_literals() + 1 }}
                    )
                ) as landed_hashes
            from (
                select
                    coalesce(bool_or(queue_capacity > 0), false) as has_capacity,
                    coalesce(bool_and(is_as_published), true) as triggers_are_as_published,
                    coalesce(bool_or(takes_earlier_landings), false) as takes_earlier,
                    to_json(sort_array(collect_list(
                        if(key is null or not is_in_seed, null, struct(trigger_name, key))
                    ))) as key_expressions
                from {{ ref('triggers_this_run') }}
            ) as triggers
        {%- endset -%}
        {%- set found = run_query(asked).rows[0] -%}
        {%- set returning = fromjson(found.returning) -%}
        {%- set landed = fromjson(found.landed) -%}
        {#- the hashes of a few deliveries are literals, which need no join. If two ids share a
            hash, this run looks for repeated deliveries in vain, and nothing else changes. -#}
        {%- set hashes = fromjson(found.landed_hashes) -%}
        {%- set are_few = hashes | length <= most_literals() -%}
        {#- files whose ids are all below or all above those of this run are not read. Only if these
            ids are plain: other text may not mean the same as a literal. -#}
        {%- set ids = landed.get('ids') -%}
        {%- set repeated -%}
            select 1
            from (
                select delivery_id
                from (
                    select delivery_id from {{ landed_before('deliveries') }}
                    union all
                    select delivery_id from {{ taken_deliveries(landed.days) }}
                )
                {% if ids -%}
                    where delivery_id between {{ sql_text(ids.first) }} and {{ sql_text(ids.last) }}
                {%- endif %}
            ) as earlier
            {% if are_few -%}
                where xxhash64(earlier.delivery_id) in ({{ hashes | join(', ') or 'null' }})
            {%- else -%}
                left semi join {{ ref('stg_deliveries') }} as landed
                    on earlier.delivery_id = landed.delivery_id
                union all
                select 1
                from {{ ref('stg_deliveries') }}
                group by delivery_id
                having count(*) > 1
            {%- endif %}
            limit 1
        {%- endset -%}
        {%- do facts.update({
            'has_capacity': found.has_capacity,
            'triggers_are_as_published': found.triggers_are_as_published,
            'takes_earlier': found.takes_earlier,
            'key_expressions': fromjson(found.key_expressions),
            'has_holds': run.landed['delivery_holds'] is not none,
            'returning_days': returning | map(attribute='day') | list | sort,
            'has_decided': returning | selectattr('has_decided') | list | length > 0,
            'landed_days': landed.days,
            'has_repeated': (are_few and hashes | unique | list | length < hashes | length)
                or run_query(repeated).rows | length > 0,
        }) -%}
        {%- do run.queue_facts.update(facts) -%}
    {%- endif -%}
    {{ return(facts) }}
{%- endmacro %}
