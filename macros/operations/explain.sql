{% macro explain(delivery_id=none, trigger_name=none, document_key=none) %}
    {%- if execute -%}
        {%- do adapter.exactly_once.check_lake(graph) -%}
        {%- if delivery_id is none and document_key is none -%}
            {%- do exceptions.raise_compiler_error(
                "exactly_once: explain needs --args '{delivery_id: ..., trigger_name: ...}' or "
                ~ "'{document_key: ...}'"
            ) -%}
        {%- endif -%}
        {%- do check_explained(trigger_name) -%}
        {%- set told = told_of_delivery(delivery_id, trigger_name) if delivery_id is not none
            else told_of_key(document_key, trigger_name) -%}
        {%- if told | length == 0 -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: nothing is known of '
                ~ ('delivery ' ~ delivery_id if delivery_id is not none
                    else 'document key ' ~ document_key)
                ~ (' in trigger ' ~ trigger_name if trigger_name is not none else '')
                ~ ': no landed row, no decision, no rejection has it; see document_statuses'
            ) -%}
        {%- endif -%}
        {%- for line in told -%}
            {%- do print(line) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}


{% macro check_explained(trigger_name) %}
    {#- Stop a question about what no run has made, or about a trigger that nobody knows. -#}
    {%- if load_relation(ref('explanations')) is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: nothing can be explained yet, since no run was published in schema '
            ~ target.schema ~ ': land deliveries and start `dbt build`'
        ) -%}
    {%- endif -%}
    {%- if trigger_name is not none -%}
        {%- set in_seed = run_query(
            'select trim(trigger_name) from ' ~ ref('triggers') ~ ' order by 1'
        ).columns[0].values() -%}
        {#- one that has left the seed has what it decided -#}
        {%- set decided = 'select 1 from ' ~ ref('document_status') ~ ' where trigger_name = '
            ~ sql_text(trigger_name) ~ ' limit 1' -%}
        {%- if trigger_name not in in_seed and run_query(decided).rows | length == 0 -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: no trigger is named ' ~ trigger_name ~ '; seeds/triggers.csv has '
                ~ in_seed | join(', ')
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
