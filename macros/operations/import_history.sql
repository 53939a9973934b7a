{% macro import_history(trigger_name, relation, key, processed_at, dry_run=false) %}
    {#- Adds to a trigger's history what another system has processed before, so that copies of
        it are duplicates. key and processed_at are columns of the relation, or SQL over them. -#}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- do check_trigger(trigger_name) -%}
    {%- do check_is_made('trigger_settings') -%}
    {%- do adapter.exactly_once.refuse_wrong_seeds(graph, seed_words(), trigger_defaults()) -%}
    {%- set never_looks -%}
        select 1 from {{ ref('trigger_settings') }}
        where
            trigger_name = {{ sql_text(trigger_name) }} and not (detect_duplicates and use_history)
    {%- endset -%}
    {%- if run_query(never_looks).rows -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ trigger_name ~ ' never looks into history: set detect_duplicates '
            ~ 'and use_history in seeds/triggers.csv first'
        ) -%}
    {%- endif -%}
    {%- for name, text in [('key', key), ('processed_at', processed_at)] -%}
        {%- set problem = adapter.exactly_once.expression_problem(text, relation, false) -%}
        {%- if problem -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: import_history cannot read ' ~ name ~ ' ' ~ text ~ ' of '
                ~ relation ~ ': ' ~ problem
            ) -%}
        {%- endif -%}
    {%- endfor -%}

    {#- each row of the relation as an entry of history, and what an import does with it; {bound}
        is the expiry before which history is removed -#}
    {%- set documents -%}
        select
            *,
            {{ key_hash('trigger_id', 'document_key') }} as key_hash,
            {{ key_hash('trigger_id', 'document_key', 2) }} as key_check,
            case
                when key_state = 'MISSING' then 'WITHOUT_KEY'
                when key_state = 'TOO_LONG' then 'KEY_TOO_LONG'
                when started_at is null then 'WITHOUT_TIME'
                when {{ has_expired("timestamp '{bound}'") }} then 'EXPIRED'
                else 'LIVE'
            end as import_outcome
        from (
            select
                settings.trigger_id,
                settings.trigger_name,
                processed.document_key,
                {{ key_state('processed.document_key') }} as key_state,
                processed.started_at,
                {{ expiry('processed.started_at', 'settings.history_time_to_live_ms') }}
                    as expires_at
            from (
                select
                    nullif(cast((
                        {{ adapter.exactly_once.filter_sql(key) }}
                    ) as string), '') as document_key,
                    try_cast((
                        {{ adapter.exactly_once.filter_sql(processed_at) }}
                    ) as timestamp) as started_at
                from {{ relation }}
            ) as processed
            cross join {{ ref('trigger_settings') }} as settings
            where settings.trigger_name = {{ sql_text(trigger_name) }}
        )
    {%- endset -%}

    {#- what a piece adds: each document that has no entry `completed` in history that lives as
        long. {piece} is the condition of the piece, {since} its first day, {history} the ledger
        before it, {run_id} and {number} are those of its publication -#}
    {%- set entries -%}
        with

        documents as (

            select
                trigger_name,
                document_key,
                key_hash,
                key_check,
                max(started_at) as started_at,
                max(expires_at) as expires_at
            from ({{ documents }})
            where import_outcome = 'LIVE' and {piece}
            group by trigger_name, document_key, key_hash, key_check

        ),

        known as (

            select
                key_hash,
                key_check,
                expires_at
            from {history}
            -- no document of the piece expires before
            where has_completed and expires_at >= timestamp '{since}'

        )

        select
            documents.*,
            true as has_processing,
            true as has_completed,
            concat('import-{number}/', documents.document_key) as delivery_id,
            '{run_id}' as run_id
        from documents
        left anti join known
            on
                documents.key_hash = known.key_hash
                and documents.key_check = known.key_check
                and documents.expires_at <= known.expires_at
    {%- endset -%}

    {%- for line in operations().import_history(documents, entries, dry_run) -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}
