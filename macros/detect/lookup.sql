{% macro queue_keys() -%}
    {#- What this run looks up in history: `oldest`, a literal of the earliest received_at, so that
        Iceberg leaves out the partitions that expired before it, and `number` of the deliveries;
        outside of a run nothing is known of either. Stops a run in which one key has more
        deliveries than fit into an array of a chain (max_deliveries_per_key). The run
        remembers what else its queue was found to hold, see bind_queue. -#}
    {%- set keys = {'oldest': forever(), 'number': none} -%}
    {%- if current_run() -%}
        {%- set query -%}
            select
                cast(min(oldest) as string) as oldest,
                coalesce(sum(deliveries), 0) as deliveries,
                coalesce(max(deliveries), 0) as most_of_one_key,
                max_by(trigger_name, deliveries) as trigger_of_most,
                cast(({{ latest_in_queue() }}) as string) as latest,
                (
                    select
                        to_json(collect_set(struct(
                            trigger_name, cast(to_date(landed_received_at) as string) as day
                        )))
                    from {{ ref('trigger_queue') }}
                    where place = 'QUEUED' and resolver is not null
                ) as with_resolver
            from (
                select
                    trigger_name,
                    min(received_at) as oldest,
                    count(*) as deliveries
                from {{ ref('trigger_queue') }}
                where place = 'QUEUED' and uses_history
                group by trigger_name, key_hash, key_check
            )
        {%- endset -%}
        {%- set found = run_query(query).rows[0] -%}
        {%- if found.most_of_one_key > var('max_deliveries_per_key') -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: trigger ' ~ found.trigger_of_most ~ ' has '
                ~ '{:,}'.format(found.most_of_one_key | int)
                ~ ' deliveries of one key in its queue, which are decided together, and '
                ~ 'max_deliveries_per_key is ' ~ '{:,}'.format(var('max_deliveries_per_key'))
                ~ ': set queue_capacity of the trigger below that, so that runs take fewer at a '
                ~ 'time, or raise the variable and the memory of Spark (spark.driver.memory, '
                ~ 'spark.executor.memory)'
            ) -%}
        {%- endif -%}
        {%- do keys.update({'number': found.deliveries}) -%}
        {%- do current_run().bind_queue(
            found.most_of_one_key > 1, found.latest, fromjson(found.with_resolver)
        ) -%}
        {%- if found.oldest is not none -%}
            {%- do keys.update({'oldest': "timestamp '" ~ found.oldest ~ "'"}) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(keys) }}
{%- endmacro %}


{% macro is_of_this_run(history, keys) -%}
    {#- A condition on key_hash that is true for the entries of this run's keys and for few others.

        Where the run has few keys, the hashes alone are read first: most often history knows none
        or few of them, which then are literals, and the other columns are read where Parquet's
        statistics cannot rule them out. A run with many keys would read key_hash twice for little.

        history: the live part of document_history, a query; keys: see queue_keys. -#}
    {%- set few_keys, few_hashes = 10000, 1000 -%}
    {%- set hashes %}
        select key_hash from {{ ref('trigger_queue') }}
        where place = 'QUEUED' and uses_history
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
            select transform(sort_array(collect_list(struct(place, word))), bits -> bits.word)
            from (
                select
                    places.id as place,
                    coalesce(bit_or(shiftleft(1L, bit)), 0L) as word
                from range({{ size.words }}) as places
                left join (
                    select
                        key_hash & {{ size.words - 1 }} as place,
                        cast(shiftrightunsigned(key_hash, 20) & 63 as int) as bit
                    from ({{ hashes }})
                ) as bits on places.id = bits.place
                group by places.id
            )
        )[cast({{ hash }} & {{ size.words - 1 }} as int)],
        cast(shiftrightunsigned({{ hash }}, 20) & 63 as int)
    ) = 1
{%- endmacro %}


{% macro history_state(completed_until, processing_until, received_at, is_unavailable, removed_until) -%}
    {#- What history says of a key at a time, from the greatest end of life of its entries of each
        kind. is_unavailable is the operator's word; what has been removed cannot be told either. -#}
    case
        when {{ is_unavailable }} then 'UNAVAILABLE'
        when coalesce({{ received_at }} < {{ removed_until }}, false) then 'UNAVAILABLE'
        when
            {{ completed_until }} > {{ received_at }} and {{ processing_until }} > {{ received_at }}
            then 'BOTH'
        when {{ completed_until }} > {{ received_at }} then 'COMPLETED'
        when {{ processing_until }} > {{ received_at }} then 'PROCESSING'
        else 'NONE'
    end
{%- endmacro %}
