{% macro queue_facts() -%}
    {#- Facts that the SQL of trigger_queue and of its parts depends on. checked_deliveries asks for
        them once a run, before that SQL is rendered.
        - Triggers: see trigger_facts.
        - Holds: whether an operator has ever held a delivery.
        - Deliveries that return to the queue: whether any was decided before, and the days on
          which they were received: only these days of the landed table are read, in a run.
        - Deliveries that landed since the last run: their days, whether any names a destination,
          whether any landed before, and on which days: only these are compared with them. -#}
    {%- set run = current_run() -%}
    {%- if run and run.queue_facts -%}
        {{ return(run.queue_facts) }}
    {%- endif -%}
    {%- set facts = {
        'has_capacity': true,
        'has_suspended': true,
        'triggers_are_as_published': false,
        'takes_earlier': true,
        'has_starts': true,
        'has_resolvers': true,
        'key_expressions': [],
        'has_holds': true,
        'has_destinations': true,
        'has_repeated': true,
        'has_decided': true,
        'returning_days': none,
        'landed_days': none,
        'earlier_days': none,
    } -%}
    {%- if run -%}
        {%- do facts.update(trigger_facts()) -%}
        {%- do facts.update(returning_facts()) -%}
        {%- do facts.update(landed_facts()) -%}
        {%- do facts.update({'has_holds': run.landed['delivery_holds'] is not none}) -%}
        {%- do run.queue_facts.update(facts) -%}
    {%- endif -%}
    {{ return(facts) }}
{%- endmacro %}

{% macro trigger_facts() -%}
    {#- Whether any trigger has a capacity, is suspended, takes deliveries from a time on only, takes
        deliveries that earlier runs consumed, or has a resolver; whether all triggers are as the
        last run published them; the key expressions. -#}
    {%- set triggers = ref('triggers_this_run') -%}
    {%- set notes = notes_on(triggers) -%}
    {%- if 'facts' not in notes -%}
        {%- set query -%}
            select
                coalesce(bool_or(queue_capacity > 0), false) as has_capacity,
                coalesce(bool_or(is_suspended), false) as has_suspended,
                coalesce(bool_and(is_as_published), true) as triggers_are_as_published,
                coalesce(bool_or(takes_earlier_landings), false) as takes_earlier,
                coalesce(bool_or(takes_from is not null), false) as has_starts,
                coalesce(bool_or(resolver is not null), false) as has_resolvers,
                to_json(sort_array(collect_list(
                    if(key is null or not is_in_seed, null, struct(trigger_name, key))
                ))) as key_expressions
            from {{ triggers }}
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- do notes.update({'facts': {
            'has_capacity': found.has_capacity,
            'has_suspended': found.has_suspended,
            'triggers_are_as_published': found.triggers_are_as_published,
            'takes_earlier': found.takes_earlier,
            'has_starts': found.has_starts,
            'has_resolvers': found.has_resolvers,
            'key_expressions': fromjson(found.key_expressions),
        }}) -%}
    {%- endif -%}
    {{ return(notes.facts) }}
{%- endmacro %}

{% macro returning_facts() -%}
    {#- Whether any delivery that returns to the queue was decided before, and on which days those
        that return were received. -#}
    {%- set returning = ref('returning_this_run') -%}
    {%- set rows = [] -%}
    {%- if not is_empty(returning) -%}
        {%- set query -%}
            select
                cast(to_date(landed_received_at) as string) as day,
                bool_or(origin != 'LANDED') as has_decided
            from {{ returning }}
            group by day
            order by day
        {%- endset -%}
        {%- do rows.extend(run_query(query).rows) -%}
    {%- endif -%}
    {{ return({
        'has_decided': rows | selectattr('has_decided') | list | length > 0,
        'returning_days': rows | map(attribute='day') | list,
    }) }}
{%- endmacro %}

{% macro landed_facts() -%}
    {#- On which days the deliveries were received that landed since the last run, whether any names
        a destination, whether an id among them came before or comes twice, and on which days its
        earlier deliveries were received. -#}
    {%- set is_plain = "delivery_id rlike '^[A-Za-z0-9 _.:/@#+=,-]{1,200}$'" -%}
    {#- a row of another year breaks the contract, and no literal names its day -#}
    {%- set day = 'if(year(received_at) between 1 and 9999, cast(to_date(received_at) as string), null)'
    -%}
    {%- set first_rows -%}
        select
            if({{ is_plain }}, delivery_id, null) as plain_id,
            cast(xxhash64(delivery_id) as string) as id_hash,
            destination is not null as has_destination,
            {{ day }} as day
        from {{ ref('stg_deliveries') }}
        limit {{ most_literals() + 1 }}
    {%- endset -%}
    {%- set rows = run_query(first_rows).rows -%}
    {%- set are_few = rows | length <= most_literals() -%}
    {%- if are_few -%}
        {%- set days = rows | map(attribute='day') | select | unique | sort -%}
        {%- set has_destinations = rows | selectattr('has_destination') | list | length > 0 -%}
        {%- set ids = rows | map(attribute='plain_id') | list -%}
        {%- set are_plain = ids and none not in ids -%}
        {%- set first_id = ids | min(case_sensitive=true) if are_plain else none -%}
        {%- set last_id = ids | max(case_sensitive=true) if are_plain else none -%}
        {#- literals, which need no join. If two ids share a hash, this run looks for repeated
            deliveries in vain, and nothing else changes. -#}
        {%- set hashes = rows | map(attribute='id_hash') | list -%}
        {%- set comes_twice = hashes | unique | list | length < hashes | length -%}
    {%- else -%}
        {%- set query -%}
            select
                to_json(sort_array(collect_set({{ day }}))) as days,
                bool_or(destination is not null) as has_destinations,
                if(bool_and({{ is_plain }}), min(delivery_id), null) as first_id,
                if(bool_and({{ is_plain }}), max(delivery_id), null) as last_id
            from {{ ref('stg_deliveries') }}
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- set days = fromjson(found.days) -%}
        {%- set has_destinations = found.has_destinations -%}
        {%- set first_id, last_id = found.first_id, found.last_id -%}
        {%- set hashes, comes_twice = none, false -%}
    {%- endif -%}
    {%- set earlier = came_before(days, first_id, last_id, hashes) -%}
    {%- set repeated -%}
        select 1 from {{ earlier }}
        {% if hashes is none -%}
            union all
            select 1 from {{ ref('stg_deliveries') }} group by delivery_id having count(*) > 1
        {%- endif %}
        limit 1
    {%- endset -%}
    {%- set has_repeated = comes_twice or run_query(repeated).rows | length > 0 -%}
    {%- set earlier_days = run_query(
        'select distinct ' ~ day ~ ' as day from ' ~ earlier
    ).columns[0].values() | select | sort if has_repeated else [] -%}
    {{ return({
        'landed_days': days,
        'has_destinations': has_destinations,
        'has_repeated': has_repeated,
        'earlier_days': earlier_days,
    }) }}
{%- endmacro %}

{% macro came_before(days, first_id, last_id, hashes) -%}
    {#- A relation of the earlier deliveries, landed or taken, whose ids have landed again since the
        last run.

        days: those on which the new ones were received; statuses of other days are not read.
        first_id, last_id: files whose ids are all below or all above are not read; none if the ids
        are not plain, since other text may not mean the same as a literal. hashes: those of the ids
        if they are few, else none. -#}
    (
        select earlier.received_at
        from (
            select
                delivery_id,
                received_at
            from (
                select
                    delivery_id,
                    received_at
                from {{ landed_before('deliveries') }}
                union all
                select
                    delivery_id,
                    received_at
                from {{ taken_deliveries(days) }}
            )
            {% if first_id is not none -%}
                where delivery_id between {{ sql_text(first_id) }} and {{ sql_text(last_id) }}
            {%- endif %}
        ) as earlier
        {% if hashes is not none -%}
            where xxhash64(earlier.delivery_id) in ({{ hashes | join(', ') or 'null' }})
        {%- else -%}
            left semi join {{ ref('stg_deliveries') }} as landed
                on earlier.delivery_id = landed.delivery_id
        {%- endif %}
    )
{%- endmacro %}
