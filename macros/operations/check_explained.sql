{% macro check_explained(trigger_name) %}
    {#- Stop a question about what no run has made, or about a trigger that nobody knows. -#}
    {%- if load_relation(ref('explanations')) is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: nothing can be explained yet, since no run was published in schema '
            ~ target.schema ~ ': land deliveries and start `dbt build`'
        ) -%}
    {%- endif -%}
    {%- if trigger_name is not none -%}
        {#- one that has left the seed has what it decided -#}
        {%- do check_trigger(trigger_name, or_decided=true) -%}
    {%- endif -%}
{% endmacro %}
