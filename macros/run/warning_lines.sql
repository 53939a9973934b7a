{% macro warning_lines(results) -%}
    {#- Of the tests of tests/warnings that have warned in this command, what a person should do. -#}
    {%- set kinds = [] -%}
    {%- for result in results if result.status == 'warn' and 'warning' in result.node.tags -%}
        {%- do kinds.append(sql_text(result.node.config.meta.kind)) -%}
    {%- endfor -%}
    {%- if not kinds -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set view = graph.nodes['model.exactly_once.things_to_do'] -%}
    {%- set lines -%}
        select
            concat(
                concat_ws(', ', 'to do', trigger_name), ': ', format_number(documents, 0), ' ',
                what, '; ', what_to_do
            )
        from {{ view.schema }}.{{ view.alias }}
        where kind in ({{ kinds | join(', ') }})
        order by kind, trigger_name
        limit 20
    {%- endset -%}
    {{ return(run_query(lines).columns[0].values() | list) }}
{%- endmacro %}
