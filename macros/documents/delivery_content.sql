{% macro delivery_content(columns=none) -%}
    {#- A hash of a landed row's content: all columns of its contract but landed_at, which landing
        sets. `columns` (name, data_type) are those of the source table, by default of deliveries.
        `exactly-once land` renders this file too and gives the columns. -#}
    {%- if columns is none -%}
        {%- set columns = [] -%}
        {%- if execute -%}
            {%- for source in graph.sources.values()
                if source.source_name == 'landing' and source.name == 'deliveries' -%}
                {%- do columns.extend(source.columns.values()) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
    {#- JSON shows which column is null; a time goes in as a number, since its text has no
        microseconds -#}
    sha2(to_json(named_struct(
        {%- for column in columns if column.name != 'landed_at' %}
        '{{ column.name }}', {% if column.data_type == 'timestamp' -%}
            unix_micros({{ column.name }})
        {%- else -%}
            {{ column.name }}
        {%- endif -%}
        {{ ',' if not loop.last }}
        {%- endfor %}
    )), 256)
{%- endmacro %}
