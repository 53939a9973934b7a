{% macro maintain() %}
    {%- for line in adapter.exactly_once.maintain(
        graph, invocation_id, var('run_timeout'), retention()
    ) -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}

{% macro remove_expired_history() %}
    {%- do log(
        'exactly_once: '
        ~ adapter.exactly_once.remove_expired_history(
            graph, invocation_id, var('run_timeout'), has_expired("timestamp '{bound}'")
        ),
        info=true,
    ) -%}
{% endmacro %}

{% macro retention() %}
    {#- How long upkeep keeps what nothing needs any more, from the variables of the project. -#}
    {{ return({
        'keep_snapshots_hours': var('keep_snapshots_hours'),
        'keep_statuses_days': var('keep_statuses_days'),
        'keep_journal_days': var('keep_journal_days'),
        'keep_landed_days': var('keep_landed_days'),
    }) }}
{% endmacro %}
