{% macro answers_so_far() -%}
    {#- What resolvers have answered in this run: resolver_answers asks in rounds and reads its own
        answers through detection, so that no ref could name it here. Empty where nobody is asked. -#}
    {%- set run = current_run() -%}
    {%- if run and run.triggers_with_resolver -%}
        {%- set answers = graph.nodes['model.exactly_once.resolver_answers'] -%}
        (
            select *
            from {{ answers.schema }}.{{ answers.alias }}
            where for_run_id = '{{ invocation_id }}'
        )
    {%- else -%}
        (
            select
                cast(null as string) as trigger_name,
                cast(null as string) as delivery_id,
                cast(null as string) as resolver_result,
                cast(null as string) as message
            where false
        )
    {%- endif -%}
{%- endmacro %}
