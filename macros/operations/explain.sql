{% macro explain(delivery_id=none, trigger_name=none, document_key=none) %}
    {%- do adapter.exactly_once.check_lake(graph) -%}
    {%- if delivery_id is none and document_key is none -%}
        {%- do exceptions.raise_compiler_error(
            "exactly_once: explain needs --args '{delivery_id: ..., trigger_name: ...}' or "
            ~ "'{document_key: ...}'"
        ) -%}
    {%- endif -%}
    {%- do check_is_made('explanations') -%}
    {%- if trigger_name is not none -%}
        {#- a trigger that is no longer in the seed still has its decisions -#}
        {%- do check_trigger(trigger_name, or_in=ref('document_status')) -%}
    {%- endif -%}
    {%- set lines = [] -%}

    {#- for a delivery: its explanation in each trigger, or the one named; else why it has none -#}
    {%- if delivery_id is not none -%}
        {%- set id = sql_text(delivery_id) -%}
        {%- set explained -%}
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
                    if(
                        reason = 'REPEATED',
                        '; its first row was taken',
                        concat('; resubmit it by its rejection_id ', rejection_id)
                    )
                )
            from {{ ref('rejected_deliveries') }}
            where delivery_id = {{ id }} or rejection_id = {{ id }}
        {%- endset -%}
        {%- set landed -%}
            select
                'delivery ' || delivery_id || ' has landed and no run has taken it yet: start '
                || '`dbt build`' as explanation
            from {{ source('landing', 'deliveries') }}
            where delivery_id = {{ id }}
            limit 1
        {%- endset -%}
        {%- set by_trigger = run_query(explained).rows -%}
        {%- if by_trigger | length == 0 -%}
            {%- do lines.extend(
                run_query(left_out).columns[0].values() or run_query(landed).columns[0].values()
            ) -%}
        {%- else -%}
            {%- for row in by_trigger if trigger_name is none or row[0] == trigger_name | string -%}
                {%- do lines.append(row[1]) -%}
            {%- else -%}
                {%- do lines.extend(run_query(left_out).columns[0].values()) -%}
                {%- do lines.append(
                    'delivery ' ~ delivery_id ~ ' did not go to trigger ' ~ trigger_name
                    ~ ', but to ' ~ by_trigger | map(attribute=0) | join(', ')
                ) -%}
            {%- endfor -%}
        {%- endif -%}

    {#- for a key: every delivery with it in the order of receipt, by trigger -#}
    {%- else -%}
        {%- set deliveries_of_key -%}
            select
                trigger_name,
                {{ time_in_words('received_at') }},
                delivery_id,
                coalesce(status, 'WAITING'),
                decision,
                afterwards
            from {{ ref('explanations') }}
            where
                document_key = {{ sql_text(document_key) }}
                {%- if trigger_name is not none %}
                and trigger_name = {{ sql_text(trigger_name) }}
                {%- endif %}
            order by trigger_name, received_at, delivery_id
        {%- endset -%}
        {%- for trigger, deliveries in run_query(deliveries_of_key).rows
            | groupby(0, case_sensitive=true) -%}
            {%- do lines.append(
                'document ' ~ document_key ~ ' in trigger ' ~ trigger ~ ': '
                ~ (deliveries | length)
                ~ (' delivery' if deliveries | length == 1 else ' deliveries')
            ) -%}
            {%- for row in deliveries -%}
                {%- do lines.append(
                    '  ' ~ row[1] ~ '  ' ~ row[2] ~ ': ' ~ row[3] ~ '\n    decision    ' ~ row[4]
                    ~ '\n    afterwards  ' ~ row[5]
                ) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}

    {%- for line in lines -%}
        {%- do print(line) -%}
    {%- else -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: nothing is known of '
            ~ ('delivery ' ~ delivery_id if delivery_id is not none
                else 'document key ' ~ document_key)
            ~ (' in trigger ' ~ trigger_name if trigger_name is not none else '')
            ~ ': no landed row, no decision, no rejection has it; see decided_deliveries'
        ) -%}
    {%- endfor -%}
{% endmacro %}
