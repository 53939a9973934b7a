{% macro accepted_deliveries(until, rejected=none) -%}
    {#- A relation of the landed deliveries that keep the contract, with landing_rank: how they were
        judged when a run consumed them, whatever the transports are today. 0: accepted, or not
        consumed yet; 1: in conflict with an accepted one; 2: rejected for its transport. What was
        rejected is known by its text, since its place in the table may change.

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
