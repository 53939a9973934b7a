{% macro is_report() -%}
    {#- Whether a row of landing.trigger_executions has an event of the contract. -#}
    event in ('STARTED', 'SUCCESS', 'ERROR', 'TRANSIENT_ERROR')
{%- endmacro %}
