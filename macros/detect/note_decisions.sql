{% macro note_decisions() -%}
    {#- The post-hook of decisions: notes what this run has found, so that later models know whether
        they have rows to write (see Run.found and no_rows_where). -#}
    {%- if current_run() -%}
        {%- set query = counts_as_json(decision_counts(from_memory(this))) -%}
        {%- set counts = note_counts('decisions', run_query(query).rows[0][0]) -%}
        {%- do current_run().found.update({
            'decided': counts | selectattr('is_decided') | sum('documents'),
            'undecided': counts | rejectattr('is_decided') | sum('documents'),
            'suspended': counts | selectattr('status', 'equalto', 'SUSPENDED') | sum('documents'),
            'opened': counts | selectattr('is_opened') | sum('documents'),
            'added': counts | selectattr('adds_to_history') | sum('documents'),
        }) -%}
    {%- endif -%}
{%- endmacro %}

{% macro has_decided(status, decided_by=none) -%}
    {#- Whether this run has decided this of any document, by this method if one is named; True if
        that is not known. -#}
    {%- if not current_run() -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set decided = current_run().counts.decisions.rows
        | selectattr('status', 'equalto', status) | list -%}
    {%- if decided_by -%}
        {%- set decided = decided | selectattr('decided_by', 'equalto', decided_by) | list -%}
    {%- endif -%}
    {{ return(decided | length > 0) }}
{%- endmacro %}

{% macro has_found(kind) -%}
    {#- Whether this run has found any of a kind, see Run.found; True if that is not known. -#}
    {{ return(current_run() is none or current_run().found.get(kind) != 0) }}
{%- endmacro %}
