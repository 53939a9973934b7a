{% macro list_failed_documents(wanted) %}
    {#- Print the failed documents of a query, the first twenty by name; returns how many there are. -#}
    {%- set documents = run_query('select count(*) from (' ~ wanted ~ ')').rows[0][0] -%}
    {%- for row in run_query(
        'select trigger_name, delivery_id, service, cause, failed_at, message from (' ~ wanted
        ~ ') order by failed_at, trigger_name, delivery_id limit 20'
    ).rows -%}
        {%- do print(row.values() | join(' | ')) -%}
    {%- endfor -%}
    {%- if documents > 20 -%}
        {%- do print('and ' ~ (documents - 20) ~ ' more, see failed_documents') -%}
    {%- endif -%}
    {{ return(documents) }}
{% endmacro %}
