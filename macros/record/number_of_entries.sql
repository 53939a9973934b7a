{% macro number_of_entries() -%}
    {#- How many entries some rows of history_ledger stand for. -#}
    (count_if(has_processing) + count_if(has_completed))
{%- endmacro %}
