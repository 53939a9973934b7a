{% macro explain(delivery_id=none, trigger_name=none, document_key=none) %}
    {%- do adapter.exactly_once.check_lake(graph) -%}
    {%- if delivery_id is none and document_key is none -%}
        {%- do exceptions.raise_compiler_error(
            "exactly_once: explain needs --args '{delivery_id: ..., trigger_name: ...}' or "
            ~ "'{document_key: ...}'"
        ) -%}
    {%- endif -%}
    {%- do check_explained(trigger_name) -%}
    {%- set lines = explanation_of_delivery(delivery_id, trigger_name)
        if delivery_id is not none else explanation_of_key(document_key, trigger_name) -%}
    {%- if lines | length == 0 -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: nothing is known of '
            ~ ('delivery ' ~ delivery_id if delivery_id is not none
                else 'document key ' ~ document_key)
            ~ (' in trigger ' ~ trigger_name if trigger_name is not none else '')
            ~ ': no landed row, no decision, no rejection has it; see document_statuses'
        ) -%}
    {%- endif -%}
    {%- for line in lines -%}
        {%- do print(line) -%}
    {%- endfor -%}
{% endmacro %}
