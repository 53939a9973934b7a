{% macro note_decisions() -%}
    {#- The post-hook of decisions: what this run has found, by which the models behind it know whether
        they have rows to write (see Run.found and no_rows_where). -#}
    {%- if current_run() -%}
        {%- set query -%}
            select
                count_if(is_decided) as decided,
                count_if(not is_decided) as undecided,
                count_if(status = 'SUSPENDED') as suspended,
                count_if({{ is_executed() }} and service is not null) as opened,
                count_if(adds_to_history) as added
            from {{ from_memory(this) }}
        {%- endset -%}
        {%- do current_run().found.update(run_query(query).rows[0].dict()) -%}
    {%- endif -%}
{%- endmacro %}

{% macro has_found(kind) -%}
    {#- Whether this run has found any of a kind, see Run.found; True also where that is not known. -#}
    {{ return(current_run() is none or current_run().found.get(kind) != 0) }}
{%- endmacro %}
