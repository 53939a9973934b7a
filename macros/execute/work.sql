{% macro work() -%}
    {#- The documents that a model of materialization `service` is to process now, with the columns
        of dispatched_documents, in their order: a frozen list of service_work, since work that
        lands meanwhile is the next run's. A unit test gives its own rows as
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
