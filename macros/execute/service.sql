{% materialization service, adapter='spark' %}
    {#- A model that is a service: what it selects from work() is appended to its table. STARTED is
        recorded for each document before, SUCCESS or TRANSIENT_ERROR after. Jinja cannot catch an
        error of Spark, so adapter.exactly_once does all of it. -#}
    {%- set relation = this.incorporate(type='table') -%}

    {{ run_hooks(pre_hooks) }}

    {%- set outcome = adapter.exactly_once.serve(
        model,
        sql,
        ref('service_work'),
        ref('execution_state'),
    ) -%}
    {%- if 'TRANSIENT_ERROR' in outcome -%}
        {%- do exceptions.warn('exactly_once: ' ~ outcome) -%}
    {%- else -%}
        {%- do log('exactly_once: ' ~ outcome, info=true) -%}
    {%- endif -%}
    {%- call noop_statement('main', outcome, 'OK', '0') -%}
        -- {{ outcome }}
    {%- endcall -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [relation]}) }}
{% endmaterialization %}
