{{
    config(
        materialized='appended',
        tags=['state'],
        contract={'enforced': false},
    )
}}
{#- It continues after the last run that its rows name. The append is one commit: a run that is
    killed before it leaves the documents to the next run, and one that is killed after it has
    nothing left to add. A run whose lock was taken over before the commit appends nothing. -#}
{%- set in_run = current_run() -%}
{%- set last_run_number = none -%}
{%- if in_run and load_cached_relation(this) -%}
    {%- set last_run_number = run_query(
        'select max(run_number) from ' ~ this
        ~ ' version as of ' ~ adapter.exactly_once.start_of(this)
    ).rows[0][0] -%}
{%- endif -%}
{%- set published = adapter.exactly_once.published_since('document_status', last_run_number)
    if in_run else ref('document_status') -%}
{%- set is_to_be_processed = is_executed() ~ ' and condition_name is not null' -%}
{%- set days_by_run = [] -%}
{%- if in_run and (last_run_number != in_run.number - 1 or queue_facts().takes_earlier) -%}
    {%- do days_by_run.extend(run_query(
        'select distinct run_id, cast(to_date(landed_received_at) as string) as day from '
        ~ published ~ ' where ' ~ is_to_be_processed
    ).rows) -%}
{%- endif -%}
{#- runs before that had no such documents are not missed -#}
{%- set is_of_this_run = in_run
    and not days_by_run | rejectattr('run_id', 'equalto', in_run.run_id) | list -%}
{%- set columns = [
    'landed_at', 'transport', 'guaranteed', 'uuid', 'track_id', 'event_id', 'errors_to'
] -%}
{%- set days = none -%}
{%- set until = 'landed' -%}
{%- if days_by_run and (not is_of_this_run or queue_facts().takes_earlier) -%}
    {%- set days = days_by_run | map(attribute='day') -%}
{%- elif in_run -%}
    {%- set days = queue_facts().landed_days + queue_facts().returning_days -%}
    {%- if not queue_facts().returning_days -%}
        {#- no run before has read any of these rows -#}
        {%- set until = 'unconsumed' -%}
    {%- endif -%}
{%- endif -%}
-- depends_on: {{ ref('document_status') }}
-- depends_on: {{ ref('published_runs') }}
with

decided as (

    select
        -- with_document adds the landed row's own
        * except (landed_at),
        {{ landed_delivery_id('delivery_id') }} as landed_delivery_id
    from {{ published }}
    where {{ is_to_be_processed }}

),

numbered as (

    select
        decided.*,
        {% if is_of_this_run -%}
            cast({{ in_run.number }} as bigint) as run_number
        {%- else -%}
            published_runs.run_number
        {%- endif %}
    from decided
    {% if not is_of_this_run -%}
        inner join {{ ref('published_runs') }} as published_runs
            on decided.run_id = published_runs.run_id
    {%- endif %}

),

with_document as (

    {% if until == 'unconsumed' and not queue_facts().has_repeated -%}
        -- one row has landed for each, and none has been edited
        select
            numbered.*,
            {% for column in columns -%}
                landed.{{ column }},
            {% endfor -%}
            landed.document
        from numbered
        left join {{ landed_before('deliveries', until=until) }} as landed
            on numbered.landed_delivery_id = landed.delivery_id
    {%- else -%}
        {{ with_document(
            'numbered', columns, days | unique | sort if days is not none else none, until
        ) | indent(4) }}
    {%- endif %}

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        landed_delivery_id,
        document_type,
        document_key,
        uuid,
        track_id,
        event_id,
        resubmission_id,

        -- decision
        status,
        decided_by,
        rule_id,
        condition_name,
        service,
        run_number,
        run_id,

        -- delivery
        transport,
        guaranteed,
        errors_to,
        redelivery_count,
        recoveries,
        document_hash,
        document,

        -- times
        received_at,
        landed_received_at,
        landed_at,
        decided_at
    from with_document

)

select * from final
