{% macro publish_run() %}
    {%- if execute -%}
        {%- do adapter.exactly_once.check_seeds_stayed() -%}
        {%- set query -%}
            select
                (
                    select
                        to_json(struct(
                            taken, decided, waiting, unrouted, rejected, decided_by_trigger
                        ))
                    from {{ this }}
                    where run_number = {{ current_run().number }}
                ) as counts,
                (select coalesce(sum(deliveries), 0) from {{ queue_counts() }} where not had_waited)
                + {{ current_run().found.decided }}
                + (
                    select count_if(has_news or ended_by is not null)
                    from {{ ref('in_execution_this_run') }}
                )
                + (
                    select
                        count_if(
                            suspensions != published_suspensions
                            -- enabled, disabled or gone from the seed since
                            or (
                                not is_first_seen
                                and (takes_documents != took_documents or is_enabled != was_enabled)
                            )
                        )
                    from {{ ref('triggers_this_run') }}
                ) as news,
                ({{ run_findings() }}) as findings
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- do adapter.exactly_once.publish(
            fromjson(found.counts), found.news | int, fromjson(found.findings)
        ) -%}
        {%- if var('preview_all_landed') -%}
            {#- after a preview document_status is still as it was published -#}
            {%- set differences -%}
                select
                    concat(
                        published.trigger_name, ': ', format_number(count(*), 0), ' ',
                        published.status, ' would be ', coalesce(previewed.status, 'waiting')
                    ) as line
                from {{ ref('document_status') }} as published
                inner join {{ ref('decisions') }} as previewed
                    on
                        published.delivery_id = previewed.delivery_id
                        and published.trigger_name = previewed.trigger_name
                where published.status != coalesce(previewed.status, 'waiting')
                group by published.trigger_name, published.status, previewed.status
                order by published.trigger_name, count(*) desc
            {%- endset -%}
            {%- do current_run().messages.extend(run_query(differences).columns[0].values()) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
