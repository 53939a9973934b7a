{% macro explanation_of_key(document_key, trigger_name=none) %}
    {#- The whole story of a document key, as a list of texts: for each trigger (or the one named)
        every delivery with that key in the order of receipt. -#}
    {%- set rows = run_query(
        'select trigger_name, ' ~ time_in_words('received_at') ~ ', delivery_id, '
        ~ "coalesce(status, 'WAITING'), decision, afterwards from " ~ ref('explanations')
        ~ ' where document_key = ' ~ sql_text(document_key | string)
        ~ ('' if trigger_name is none else ' and trigger_name = ' ~ sql_text(trigger_name))
        ~ ' order by trigger_name, received_at, delivery_id'
    ).rows -%}
    {%- set lines = [] -%}
    {%- for trigger, deliveries in rows | groupby(0) -%}
        {%- do lines.append(
            'document ' ~ document_key ~ ' in trigger ' ~ trigger ~ ': '
            ~ (deliveries | length) ~ (' delivery' if deliveries | length == 1 else ' deliveries')
        ) -%}
        {%- for row in deliveries -%}
            {%- do lines.append(
                '  ' ~ row[1] ~ '  ' ~ row[2] ~ ': ' ~ row[3] ~ '\n    decision    ' ~ row[4]
                ~ '\n    afterwards  ' ~ row[5]
            ) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(lines) }}
{% endmacro %}
