{% macro import_history(trigger_name, relation, key, processed_at, dry_run=false) %}
    {#- Adds to a trigger's history what was processed before by something else, so that copies of
        it are duplicates. key and processed_at are columns of the relation, or SQL over them. -#}
    {%- if execute -%}
        {%- do check_trigger(trigger_name) -%}
        {%- if load_relation(ref('trigger_settings')) is none -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: no run is published in schema ' ~ target.schema ~ ', so there is no '
                ~ 'history to add to: start `dbt build` once, before anything lands'
            ) -%}
        {%- endif -%}
        {%- set uses_history = run_query(
            'select detect_duplicates and use_history from ' ~ ref('trigger_settings')
            ~ ' where trigger_name = ' ~ sql_text(trigger_name)
        ).rows[0][0] -%}
        {%- if not uses_history -%}
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
        {%- set documents = processed_elsewhere(trigger_name, relation, key, processed_at) -%}
        {%- for line in adapter.exactly_once.import_history(
            graph, invocation_id, var('run_timeout'), documents, imported_entries(documents), dry_run
        ) -%}
            {%- do log('exactly_once: ' ~ line, info=true) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}


{% macro processed_elsewhere(trigger_name, relation, key, processed_at) -%}
    {#- A row for each row of a relation, as an entry of a trigger's history, and its fate in an
        import. {bound} stands for the time up to which history is removed. -#}
    select
        *,
        {{ key_hash('trigger_id', 'document_key') }} as key_hash,
        {{ key_hash('trigger_id', 'document_key', 2) }} as key_check,
        case
            when {{ key_state('document_key') }} = 'MISSING' then 'WITHOUT_KEY'
            when {{ key_state('document_key') }} = 'TOO_LONG' then 'KEY_TOO_LONG'
            when started_at is null then 'WITHOUT_TIME'
            when {{ has_expired("timestamp '{bound}'") }} then 'EXPIRED'
            else 'LIVE'
        end as fate
    from (
        select
            settings.trigger_id,
            settings.trigger_name,
            documents.document_key,
            documents.started_at,
            {{ expiry('documents.started_at', 'settings.history_time_to_live_ms') }} as expires_at
        from (
            select
                nullif(cast((
                    {{ key }}
                ) as string), '') as document_key,
                try_cast((
                    {{ processed_at }}
                ) as timestamp) as started_at
            from {{ relation }}
        ) as documents
        cross join {{ ref('trigger_settings') }} as settings
        where settings.trigger_name = {{ sql_text(trigger_name) }}
    )
{%- endmacro %}


{% macro imported_entries(documents) -%}
    {#- The entries that a piece of an import adds: two for each document that history does not know
        as completed for as long. {piece} stands for the condition of the piece, {history} for the
        table as it is before it, {run_id} and {number} for its publication. -#}
    with

    documents as (

        select
            trigger_id,
            trigger_name,
            document_key,
            key_hash,
            key_check,
            max(started_at) as started_at,
            max(expires_at) as expires_at
        from ({{ documents }})
        where fate = 'LIVE' and {piece}
        group by trigger_id, trigger_name, document_key, key_hash, key_check

    ),

    known as (

        select
            key_hash,
            key_check,
            expires_at
        from {history}
        where processing_status = 'completed'

    ),

    added as (

        select documents.*
        from documents
        left anti join known
            on
                documents.key_hash = known.key_hash
                and documents.key_check = known.key_check
                and documents.expires_at <= known.expires_at

    )

    select
        added.*,
        processing_status,
        concat('import-{number}/', document_key) as delivery_id,
        '{run_id}' as run_id
    from added
        lateral view explode(array('processing', 'completed')) as processing_status
{%- endmacro %}
