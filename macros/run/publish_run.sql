{% macro publish_run() %}
    {%- if execute -%}
        {%- do adapter.exactly_once.check_seeds_stayed() -%}
        {%- set query -%}
            select
                (select count_if(not had_waited) from {{ ref('trigger_queue') }})
                + (select count_if(is_decided) from {{ ref('decisions') }})
                + (
                    select count_if(has_news or ended_by is not null)
                    from {{ ref('documents_in_execution') }}
                )
                + (
                    select count_if(suspensions != published_suspensions)
                    from {{ ref('current_triggers') }}
                ) as news,
                ({{ run_findings() }}) as findings
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- do adapter.exactly_once.publish(found.news | int, fromjson(found.findings)) -%}
        {%- if var('preview_all_landed') -%}
            {%- do current_run().messages.extend(
                run_query(preview_differences()).columns[0].values()
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
