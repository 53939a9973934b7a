{% macro work() -%}
    {#- The documents that a model of materialization `service` is to process now, with the columns
        of dispatched_documents, in their order. It is a frozen list from service_work, since work
        that lands meanwhile is for the next run. A unit test gives its own rows as
        ref('dispatched_documents'). -#}
    {%- set dispatched = ref('dispatched_documents') -%}
    {%- do ref('execution_state') -%}
    {%- do ref('service_work') -%}
    {#- named with the package, since another project calls this -#}
    {%- if exactly_once.is_unit_test() -%}
        {{ dispatched }}
    {%- else -%}
        (
            select * except (batch_position, is_serial, started_at, last_event_at)
            from {{ model.schema }}.{{ model.alias }}__work_{{ invocation_id | replace('-', '_') }}
            -- a list that fails is run again in halves
            where true /* part */
            order by batch_position
        )
    {%- endif -%}
{%- endmacro %}

{% macro days_of_open_work() -%}
    {#- The days of the landed table that hold the documents of open work, as literals, so that no
        other is read; queried once a run, after open_documents. None outside of a run. -#}
    {%- set run = current_run() -%}
    {%- if run and 'open_days' not in run.found -%}
        {%- set query -%}
            select distinct cast(to_date(landed_received_at) as string) as day
            from {{ ref('open_documents') }}
        {%- endset -%}
        {%- do run.found.update({
            'open_days': [] if is_without_rows('open_documents')
                else run_query(query).columns[0].values() | sort
        }) -%}
    {%- endif -%}
    {{ return(run.found.open_days if run else none) }}
{%- endmacro %}
