{% macro of_taking_triggers() -%}
    {#- The partitions of waiting_deliveries that this run rewrites; a literal list,
        so that the delete takes whole partitions and reads none. -#}
    {%- set names = run_query(
        "select trigger_name from " ~ ref('triggers_this_run') ~ " where rewrites_waiting"
    ).columns[0].values() if execute else [] -%}
    {%- if names | length == 0 -%}
        false
    {%- else -%}
        trigger_name in (
            {%- for name in names %}{{ sql_text(name) }}{{ ', ' if not loop.last }}{% endfor -%}
        )
    {%- endif -%}
{%- endmacro %}
