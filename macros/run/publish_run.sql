{% macro publish_run() %}
    {%- if execute -%}
        {%- do adapter.exactly_once.check_seeds_stayed() -%}
        {%- do adapter.exactly_once.publish(has_news(), run_findings()) -%}
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

{% macro has_news() -%}
    {#- Whether this run has found anything that the last one did not know: only then it publishes.
        If nothing has landed, that may still be a delivery, execution or trigger of before. A
        delivery that has waited is news when it is examined for the first time: if it must wait for
        a document, later runs have to know that, and it no longer counts towards queue_capacity. -#}
    {%- set run = current_run() -%}
    {%- set queue = run.counts.trigger_queue.rows -%}
    {%- set examined_now = queue | selectattr('queue_outcome', 'equalto', 'QUEUED')
        | rejectattr('examined') | list -%}
    {%- if run.consumes_more or run.found.decided or run.found.suspended
        or queue | rejectattr('had_waited') | list or examined_now -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set query -%}
        select
            (
                select count_if(has_news or ended_by is not null)
                from {{ ref('in_execution_this_run') }}
            )
            + (
                select count_if(not is_first_seen and not is_as_published)
                from {{ ref('triggers_this_run') }}
            )
    {%- endset -%}
    {{ return(run_query(query).rows[0][0] > 0) }}
{%- endmacro %}
