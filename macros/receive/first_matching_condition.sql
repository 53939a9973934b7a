{% macro first_matching_condition() -%}
    {#- The position of the first condition of the row's trigger that the delivery matches; null
        if it matches none. Rendered from the seed, since the user writes filters in SQL. -#}
    {%- set by_trigger = {} -%}
    {%- if current_run() -%}
        {%- set notes = notes_on(ref('trigger_conditions')) -%}
        {%- if 'conditions' not in notes -%}
            {%- set rows = run_query(
                'select trigger_name, position, document_type, filter from '
                ~ typed_seed('trigger_conditions') ~ ' order by 1, 2'
            ) -%}
            {%- do notes.update({'conditions': rows | map('list') | list}) -%}
        {%- endif -%}
        {%- set rows = notes.conditions -%}
        {%- do current_run().found.update({'conditions': rows}) -%}
        {%- for row in rows -%}
            {%- do by_trigger.setdefault(row[0], []).append(row) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not by_trigger -%}
        cast(null as int)
    {%- else -%}
        case trigger_name
        {% for trigger_name, conditions in by_trigger.items() -%}
            when {{ sql_text(trigger_name) }} then case
            {% for condition in conditions -%}
                when document_type = {{ sql_text(condition[2]) }}
                {%- if condition[3] %} and (
                    {{ adapter.exactly_once.filter_sql(condition[3]) }}
                ){% endif %} then {{ condition[1] }}
            {% endfor -%}
            end
        {% endfor -%}
        end
    {%- endif -%}
{%- endmacro %}
