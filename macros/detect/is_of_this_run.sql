{% macro is_of_this_run(history, keys) -%}
    {#- A condition on key_hash that is true for the entries of this run's keys and for few others.

        If the run has few keys, a first query reads key_hash alone. History usually has few of them
        or none; these become literals, by which Parquet's statistics rule out most of the other
        columns. With many keys, reading key_hash twice would gain little. Up to ten keys are literals
        in the first query too.

        history: a query for the live part of history_ledger; keys: see queue_keys. -#}
    {%- set few_keys = 10000 -%}
    {%- set hashes %}
        select key_hash from {{ ref('trigger_queue') }}
        where queue_outcome = 'QUEUED' and uses_history
    {%- endset -%}
    {%- set bitmap = is_in_bitmap(hashes, keys.number) -%}
    {%- set known = none -%}
    {%- if keys.number == 0 -%}
        {%- set known = [] -%}
    {%- elif keys.hashes -%}
        {%- set known = run_query(
            'select distinct key_hash from (' ~ history ~ ') where key_hash in ('
            ~ keys.hashes | join(', ') ~ ')'
        ).columns[0].values() -%}
    {%- elif keys.number is not none and keys.number <= few_keys -%}
        {%- set known = run_query(
            'select distinct key_hash from (select key_hash from (' ~ history ~ ') where '
            ~ bitmap ~ ') left semi join (' ~ hashes ~ ') using (key_hash) limit '
            ~ (most_literals() + 1)
        ).columns[0].values() -%}
    {%- endif -%}
    {%- if known is not none -%}
        {%- do current_run().found.update({'known': known | length}) -%}
    {%- endif -%}
    {%- if known is none or known | length > most_literals() -%}
        {{ bitmap }}
    {%- elif known | length == 0 -%}
        false
    {%- else -%}
        key_hash in ({{ known | join(', ') }})
    {%- endif -%}
{%- endmacro %}

{% macro is_in_bitmap(hashes, number) -%}
    {#- True for every key_hash that the query `hashes` returns, and for one in twenty of the
        others: each hash sets a bit in an array that fits the processor's cache. Per entry a lookup
        costs a third of a join. The caller's join then removes the wrong matches.

        number: how many rows the query returns at most; none if that is not known. -#}
    {%- set size = namespace(words=1024) -%}
    {%- for _ in range(8) if size.words * 3 < (number or 0) -%}
        {%- set size.words = size.words * 2 -%}
    {%- endfor -%}
    getbit(
        (
            select
                transform(sort_array(collect_list(struct(word_number, word))), bits -> bits.word)
            from (
                select
                    words.id as word_number,
                    coalesce(bit_or(shiftleft(1L, bit)), 0L) as word
                from range({{ size.words }}) as words
                left join (
                    select
                        key_hash & {{ size.words - 1 }} as word_number,
                        cast(shiftrightunsigned(key_hash, 20) & 63 as int) as bit
                    from ({{ hashes }})
                ) as bits on words.id = bits.word_number
                group by words.id
            )
        )[cast(key_hash & {{ size.words - 1 }} as int)],
        cast(shiftrightunsigned(key_hash, 20) & 63 as int)
    ) = 1
{%- endmacro %}
