{% macro with_document(wanted, columns, days=none, until='landed') -%}
    {#- Rows of `wanted` with columns of the landed delivery and the document to process: the edited
        one of its resubmission, else the one received. A row whose landed row is gone stays, with
        nulls.

        wanted: a CTE with delivery_id, trigger_name, landed_delivery_id, landed_received_at and
        resubmission_id; columns: names of further columns of deliveries; days: see on_days; until:
        how far the landed tables are read, see landed_before. No run has judged the latest landed
        rows: if all are read, the row with the `document_hash` of `wanted` comes first. -#}
    {#- a view also shows documents that later runs have opened, which may have been edited -#}
    {%- set until_edited = 'now' if model.config.materialized == 'view' else until -%}
    select * except (arrival)
    from (
        select
            {{ wanted }}.*,
            {% for column in columns -%}
                landed.{{ column }},
            {% endfor -%}
            coalesce(edited.document, landed.document) as document,
            -- the first landed row of a delivery_id counts
            row_number() over (
                partition by
                    {{ wanted }}.landed_delivery_id,
                    {{ wanted }}.landed_received_at,
                    {{ wanted }}.delivery_id,
                    {{ wanted }}.trigger_name
                order by
                    {% if until == 'now' and days is none -%}
                        sha2(landed.document, 256) <=> {{ wanted }}.document_hash desc,
                    {%- endif %}
                    {{ order_of_landing('landed') }}
            ) as arrival
        from {{ wanted }}
        left join (
            select deliveries.*
            from {{ accepted_deliveries(until, ref('rejected_deliveries')) }} as deliveries
            where {{ on_days('deliveries.received_at', days) }}
        ) as landed
            on
                {{ wanted }}.landed_delivery_id = landed.delivery_id
                and {{ wanted }}.landed_received_at = landed.received_at
        left join (
            {{ edited_documents(until_edited) | indent(12) }}
        ) as edited on {{ wanted }}.resubmission_id = edited.resubmission_id
    )
    where arrival = 1
{%- endmacro %}

{% macro edited_documents(until='landed') -%}
    {#- The documents that operators have edited, by resubmission_id, each with the delivery that it
        is for: for each id those of the first request that landed. until: see landed_before. -#}
    {%- set requests = landed_before('resubmissions', until=until) -%}
    select
        resubmission_id,
        min_by(document, struct(landed_commit, landed_file, landed_position)) as document,
        min_by(
            struct(delivery_id, trigger_name), struct(landed_commit, landed_file, landed_position)
        ) as edited_for
    from {{ in_order_of_commits(requests, 'resubmissions', until) }}
    group by resubmission_id
{%- endmacro %}
