{% macro answers_of_this_run() -%}
    {#- The relation with what resolvers have answered in this run; none where nobody was asked, so
        that a run without resolvers reads and joins nothing. -#}
    {%- set answers = ref('resolver_answers') -%}
    {%- if execute and adapter.exactly_once.run and model.resource_type != 'unit_test'
        and not adapter.exactly_once.run.has_asked -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return(answers) }}
{%- endmacro %}
