{% macro work() -%}
    {#- The documents that a model of materialization `service` is to process now, with the columns
        of dispatched_documents: a frozen list, since work that lands meanwhile is the next run's.
        A unit test gives its own rows as ref('dispatched_documents'). -#}
    {%- set dispatched = ref('dispatched_documents') -%}
    {%- do ref('execution_state') -%}
    {%- if model.resource_type == 'unit_test' -%}
        {{ dispatched }}
    {%- else -%}
        {{ model.schema }}.{{ model.alias }}__work
    {%- endif -%}
{%- endmacro %}
