{% macro is_of_this_run(history, keys) -%}
    {#- A condition on key_hash that is true for the entries of this run's keys and for few others.

        Where the run has few keys, the hashes alone are read first: most often history knows none
        or few of them, which then are literals, and the other columns are read where Parquet's
        statistics cannot rule them out. A run with many keys would read key_hash twice for little.

        history: the live part of history_ledger, a query; keys: see queue_keys. -#}
    {%- set few_keys, few_hashes = 10000, 1000 -%}
    {%- set hashes %}
        select key_hash from {{ ref('trigger_queue') }}
        where queue_outcome = 'QUEUED' and uses_history
    {%- endset -%}
    {%- set bitmap = is_in_bitmap('key_hash', hashes, keys.number) -%}
    {%- set known = none -%}
    {%- if keys.number == 0 -%}
        {%- set known = [] -%}
    {%- elif keys.number is not none and keys.number <= few_keys -%}
        {%- set known = run_query(
            'select distinct key_hash from (select key_hash from (' ~ history ~ ') where '
            ~ bitmap ~ ') left semi join (' ~ hashes ~ ') using (key_hash) limit '
            ~ (few_hashes + 1)
        ).columns[0].values() -%}
    {%- endif -%}
    {%- if known is none or known | length > few_hashes -%}
        {{ bitmap }}
    {%- elif known | length == 0 -%}
        false
    {%- else -%}
        key_hash in ({{ known | join(', ') }})
    {%- endif -%}
{%- endmacro %}
