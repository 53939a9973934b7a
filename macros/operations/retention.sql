{% macro retention() %}
    {#- How long upkeep keeps what nothing needs any more, from the variables of the project. -#}
    {{ return({
        'keep_snapshots_hours': var('keep_snapshots_hours'),
        'keep_statuses_days': var('keep_statuses_days'),
        'keep_journal_days': var('keep_journal_days'),
        'keep_landed_days': var('keep_landed_days'),
    }) }}
{% endmacro %}
