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
