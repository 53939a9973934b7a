{% macro is_in_bitmap(hash, hashes, number) -%}
    {#- True for every hash that the query `hashes` gives as key_hash, and for one in twenty of the
        others: a bit for each in an array that fits the processor's cache. To look there costs an
        entry a third of what a join does, and a join of the rest confirms.

        number: how many the query gives, at most; none where that is not known. -#}
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
        )[cast({{ hash }} & {{ size.words - 1 }} as int)],
        cast(shiftrightunsigned({{ hash }}, 20) & 63 as int)
    ) = 1
{%- endmacro %}
