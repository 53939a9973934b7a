{% macro maintain() %}
    {%- if execute -%}
        {%- for line in adapter.exactly_once.maintain(
            graph, invocation_id, var('run_timeout'), retention()
        ) -%}
            {%- do log('exactly_once: ' ~ line, info=true) -%}
        {%- endfor -%}
    {%- endif -%}
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


{% macro remove_expired_history() %}
    {%- if execute -%}
        {%- do log(
            'exactly_once: '
            ~ adapter.exactly_once.remove_expired_history(
                graph, invocation_id, var('run_timeout'), has_expired("timestamp '{bound}'")
            ),
            info=true,
        ) -%}
    {%- endif -%}
{% endmacro %}


{% macro abandon_run(run_id) %}
    {%- if execute -%}
        {%- do log('exactly_once: ' ~ adapter.exactly_once.abandon(graph, run_id), info=true) -%}
    {%- endif -%}
{% endmacro %}


{% macro reset_state(really=false) %}
    {%- if execute -%}
        {%- if really is not sameas true -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: reset_state forgets what every trigger has processed, and the next '
                ~ "run decides all that has landed anew: say --args '{really: true}' if you mean it"
            ) -%}
        {%- endif -%}
        {%- set dropped = adapter.exactly_once.reset_state(
            graph, invocation_id, var('run_timeout')
        ) -%}
        {%- do log(
            'exactly_once: dropped ' ~ (dropped | join(', ') or 'nothing')
            ~ '; what has landed is as before',
            info=true,
        ) -%}
    {%- endif -%}
{% endmacro %}
