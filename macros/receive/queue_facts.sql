{% macro queue_facts() -%}
    {#- What the SQL of trigger_queue and of what it is made of depends on, asked once a run, by
        checked_deliveries, before they are rendered: whether any
        trigger has a capacity, whether any takes deliveries that earlier runs have consumed, the
        expressions that give triggers their keys (pairs of trigger_name and key),
        whether an operator has ever held one, the days on which the deliveries that come back were
        received (so that only those days of the landed table are read; none are known outside of a
        run), whether any of them is a resubmission, the days of those that have landed since the
        last run, and whether any of these was landed before. -#}
    {%- set run = current_run() -%}
    {%- if run and run.queue_facts -%}
        {{ return(run.queue_facts) }}
    {%- endif -%}
    {%- set facts = {
        'has_capacity': true,
        'takes_earlier': true,
        'key_expressions': [],
        'has_holds': true,
        'has_repeated': true,
        'has_resubmissions': true,
        'returning_days': none,
        'landed_days': none,
    } -%}
    {%- if run -%}
        {%- set row = run_query(
            "select coalesce(bool_or(queue_capacity > 0), false), "
            ~ "coalesce(bool_or(takes_earlier_landings), false), to_json(sort_array(collect_list("
            ~ "if(key is null, null, struct(trigger_name, key))))) from " ~ ref('current_triggers')
        ).rows[0] -%}
        {%- do facts.update({
            'has_capacity': row[0],
            'takes_earlier': row[1],
            'key_expressions': fromjson(row[2]),
            'has_holds': run.landed['delivery_holds'] is not none,
        }) -%}
        {%- set days = run_query(
            "select cast(to_date(landed_received_at) as string), true, "
            ~ "bool_or(resubmission_id is not null) from " ~ ref('returning_deliveries')
            ~ " group by 1 union all select cast(to_date(received_at) as string), false, false from "
            ~ ref('stg_deliveries') ~ " where received_at is not null group by 1"
        ).rows -%}
        {%- set landed_days = days | rejectattr(1) | map(attribute=0) | list | sort -%}
        {%- do facts.update({
            'returning_days': days | selectattr(1) | map(attribute=0) | list | sort,
            'has_resubmissions': days | selectattr(2) | list | length > 0,
            'landed_days': landed_days,
        }) -%}
        {%- set repeated = run_query(
            "select 1 from (select delivery_id from " ~ ref('stg_deliveries')
            ~ " group by delivery_id having count(*) > 1 union all select earlier.delivery_id from "
            ~ "(select delivery_id from " ~ landed_before('deliveries') ~ " union all select "
            ~ "delivery_id from " ~ taken_deliveries(landed_days) ~ ") as earlier left semi "
            ~ "join " ~ ref('stg_deliveries') ~ " as landed on earlier.delivery_id = "
            ~ "landed.delivery_id) limit 1"
        ) -%}
        {%- do facts.update({'has_repeated': repeated.rows | length > 0}) -%}
        {%- do run.queue_facts.update(facts) -%}
    {%- endif -%}
    {{ return(facts) }}
{%- endmacro %}
