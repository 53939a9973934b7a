{% materialization service, adapter='spark' %}
    {#- A model that is a service: what it selects from work() is appended to its table, and
        STARTED before, SUCCESS or TRANSIENT_ERROR after it is recorded for each document. Jinja
        cannot catch an error of Spark, so all of it is done by adapter.exactly_once. -#}
    {%- set relation = this.incorporate(type='table') -%}

    {{ run_hooks(pre_hooks) }}

    {%- set said = adapter.exactly_once.serve(
        model,
        sql,
        ref('service_work'),
        ref('execution_state'),
    ) -%}
    {%- if 'TRANSIENT_ERROR' in said -%}
        {%- do exceptions.warn('exactly_once: ' ~ said) -%}
    {%- else -%}
        {%- do log('exactly_once: ' ~ said, info=true) -%}
    {%- endif -%}
    {%- call noop_statement('main', said, 'OK', '0') -%}
        -- {{ said }}
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}


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
            select * except (place, is_serial, started_at, last_event_at)
            from {{ model.schema }}.{{ model.alias }}__work_{{ invocation_id | replace('-', '_') }}
            -- a list that fails is tried in parts
            where true /* part */
            order by place
        )
    {%- endif -%}
{%- endmacro %}
