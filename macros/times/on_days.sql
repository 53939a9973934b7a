{% macro on_days(column, days) -%}
    {#- A condition that Iceberg turns into whole partitions: the given days or, if they are many,
        all days from the first to the last. -#}
    {%- if days is none -%}
        true
    {%- elif days | length == 0 -%}
        false
    {%- elif days | length > 40 -%}
        {{ column }} >= timestamp '{{ days | first }}'
        and {{ column }} < timestamp '{{ days | last }}' + interval 1 day
    {%- else -%}
        ({% for day in days -%}
            ({{ column }} >= timestamp '{{ day }}'
            and {{ column }} < timestamp '{{ day }}' + interval 1 day)
            {{- ' or ' if not loop.last }}
        {%- endfor %})
    {%- endif -%}
{%- endmacro %}
