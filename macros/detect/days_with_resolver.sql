{% macro days_with_resolver() -%}
    {#- The days on which queued deliveries of triggers with a resolver were received, so that only
        those of the landed table are read for their documents; none outside of a run. -#}
    {%- if not (execute and adapter.exactly_once.run) -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return(run_query(
        'select distinct cast(to_date(landed_received_at) as string) from ' ~ ref('trigger_queue')
        ~ " where place = 'QUEUED' and resolver is not null"
    ).columns[0].values() | list | sort) }}
{%- endmacro %}
