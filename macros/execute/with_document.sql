{% macro with_document(wanted, deliveries, resubmissions, columns, days=none) -%}
    {#- Rows of `wanted` with columns of the landed delivery and the document to process: the edited
        one of its resubmission, else the one received. A row whose landing is gone keeps its place,
        with nulls.

        wanted: a CTE with delivery_id, trigger_name, landed_delivery_id, landed_received_at and
        resubmission_id; deliveries, resubmissions: the landed tables as far as they are to be
        read; columns: names of further columns of deliveries; days: see on_days. -#}
    select * except (arrival)
    from (
        select
            {{ wanted }}.*,
            {% for column in columns -%}
                landed.{{ column }},
            {% endfor -%}
            coalesce(edited.document, landed.document) as document,
            -- of one delivery_id the first landed rules
            row_number() over (
                partition by
                    {{ wanted }}.landed_delivery_id,
                    {{ wanted }}.landed_received_at,
                    {{ wanted }}.delivery_id,
                    {{ wanted }}.trigger_name
                order by {{ order_of_landing('landed', 'landed.is_of_known_transport') }}
            ) as arrival
        from {{ wanted }}
        left join (
            select
                deliveries.*,
                transports.transport is not null as is_of_known_transport
            from (
                select
                    *,
                    _file as landed_file,
                    _pos as landed_position
                from {{ deliveries }}
            ) as deliveries
            left join {{ transports_of_seed() }} as transports
                on deliveries.transport = transports.transport
            where
                {{ contract_breach('true') }} is null
                and {{ on_days('received_at', days) }}
        ) as landed
            on
                {{ wanted }}.landed_delivery_id = landed.delivery_id
                and {{ wanted }}.landed_received_at = landed.received_at
        left join (
            select
                resubmission_id,
                min_by(document, struct(landed_file, landed_position)) as document
            from (
                select
                    resubmission_id,
                    document,
                    _file as landed_file,
                    _pos as landed_position
                from {{ resubmissions }}
            )
            group by resubmission_id
        ) as edited on {{ wanted }}.resubmission_id = edited.resubmission_id
    )
    where arrival = 1
{%- endmacro %}
