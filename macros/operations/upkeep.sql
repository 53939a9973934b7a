{% macro maintain() %}
    {%- for line in operations().maintain(retention()) -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}

{% macro remove_expired_history() %}
    {%- set done = operations().remove_expired_history(has_expired("timestamp '{bound}'")) -%}
    {%- do log('exactly_once: ' ~ done, info=true) -%}
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
