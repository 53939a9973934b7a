{% macro landed_delivery_id(delivery_id) -%}
    {#- The landed delivery that a recovery or a resubmission comes from; any other is its own. -#}
    regexp_replace({{ delivery_id }}, '/(recovery|resubmission)-[0-9]+$', '')
{%- endmacro %}

{% macro accepted_deliveries(until, rejected=none) -%}
    {#- A relation of the landed deliveries that keep the contract, with landing_rank: how they were
        judged when a run consumed them, whatever the transports are today. 0: accepted, or not
        consumed yet; 1: in conflict with an accepted one; 2: rejected for its transport. A rejected
        row is recognized by its text, since its file and position may change.

        until: see landed_before; rejected: the ledger rejected_deliveries, by default as the last
        run published it. -#}
    (
        select
            deliveries.*,
            {% if is_unit_test() -%}
                0 as landing_rank
            {%- else -%}
                case
                    when rejections.rejected_id is null then 0
                    when array_contains(rejections.unknown_texts, {{ delivery_as_json() }})
                        then 2
                    when array_contains(rejections.conflicting_texts, {{ delivery_as_json() }})
                        then 1
                    else 0
                end as landing_rank
            {%- endif %}
        from {{ landed_before('deliveries', until=until) }} as deliveries
        {% if not is_unit_test() -%}
            left join (
                select
                    delivery_id as rejected_id,
                    collect_set(if(reason = 'UNKNOWN_TRANSPORT', raw_text, null)) as unknown_texts,
                    collect_set(if(reason = 'CONFLICTING', raw_text, null)) as conflicting_texts
                from {{ rejected or last_published('rejected_deliveries') }}
                where reason in ('UNKNOWN_TRANSPORT', 'CONFLICTING')
                group by delivery_id
            ) as rejections
                on deliveries.delivery_id = rejections.rejected_id
        {%- endif %}
        where {{ contract_breach('true') }} is null
    )
{%- endmacro %}

{% macro order_of_landing(landed) -%}
    {#- The order of landed rows of one delivery_id, of which only the first counts. A row without
        landed_at comes last, since it counts as landed when a run consumes it.

        landed: a relation as accepted_deliveries returns it. -#}
    {{ landed }}.landing_rank,
    {{ landed }}.landed_at is null,
    {{ landed }}.landed_at,
    {{ landed }}.landed_file,
    {{ landed }}.landed_position
{%- endmacro %}

{% macro first_landed(table, id) -%}
    {#- The rows of a landed table that no run has consumed: for each id the first that landed. Rows
        without an id are different ones, and so are reports of one id that say different things. -#}
    {%- set same_in = adapter.exactly_once.same_in(table) if execute else [] -%}
    {%- set landed = landed_before(table, until='unconsumed') -%}
    select * except (arrival, landed_commit, landed_file, landed_position)
    from (
        select
            *,
            row_number() over (
                partition by
                    {{ ([id] + same_in) | join(', ') }},
                    if({{ id }} is null, struct(landed_file, landed_position), null)
                order by landed_commit, landed_file, landed_position
            ) as arrival
        from {{ in_order_of_commits(landed, table, 'unconsumed') }}
    )
    where arrival = 1
{%- endmacro %}
