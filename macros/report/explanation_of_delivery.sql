{% macro explanation_of_delivery(delivery_id, trigger_name=none) %}
    {#- What is known of a delivery, as a list of texts: its explanation in each trigger (or the one
        named), else why it has none. -#}
    {%- set id = sql_text(delivery_id | string) -%}
    {%- set of_triggers -%}
        select
            trigger_name,
            explanation
        from {{ ref('explanations') }}
        where delivery_id = {{ id }}
        order by trigger_name
    {%- endset -%}
    {%- set left_out -%}
        select
            concat(
                'delivery ', delivery_id, ' was left out: ', event, ', ', message,
                ' (run ', run_id, ')'
            ) as explanation
        from {{ ref('journal_entries') }}
        where
            delivery_id = {{ id }}
            and event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
        union all
        select
            concat(
                'delivery ', delivery_id, ' was rejected: ', reason,
                coalesce(concat(' (', message, ')'), ''),
                '; resubmit it by its rejection_id ', rejection_id
            )
        from {{ ref('rejected_deliveries') }}
        where delivery_id = {{ id }} or rejection_id = {{ id }}
    {%- endset -%}
    {%- set landed -%}
        select 1 from {{ source('landing', 'deliveries') }} where delivery_id = {{ id }} limit 1
    {%- endset -%}
    {%- set explained = run_query(of_triggers).rows -%}
    {%- set lines = [] -%}
    {%- for row in explained if trigger_name is none or row[0] == trigger_name -%}
        {%- do lines.append(row[1]) -%}
    {%- endfor -%}
    {%- if lines | length == 0 and explained | length > 0 -%}
        {%- do lines.append(
            'delivery ' ~ delivery_id ~ ' did not go to trigger ' ~ trigger_name ~ ', but to '
            ~ explained | map(attribute=0) | join(', ')
        ) -%}
    {%- elif lines | length == 0 -%}
        {%- do lines.extend(run_query(left_out).columns[0].values()) -%}
        {%- if lines | length == 0 and run_query(landed).rows | length > 0 -%}
            {%- do lines.append(
                'delivery ' ~ delivery_id ~ ' has landed and no run has taken it yet: start '
                ~ '`dbt build`'
            ) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(lines) }}
{% endmacro %}
