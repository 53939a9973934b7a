{% macro work_list(service) -%}
    {#- The documents that a service which is a model works on in one run: of a concurrent trigger
        those that are dispatched, of a serial one all in their order, up to the first that has to
        wait for something else than the one before it. -#}
    {%- set is_ready -%}
        service = {{ sql_text(service) }}
        and (
            state = 'DISPATCHED'
            or (state = 'BEHIND' and coalesce(last_event, '') != 'TRANSIENT_ERROR')
        )
    {%- endset -%}
    {%- set days = run_query(
        'select distinct cast(to_date(landed_received_at) as string) from '
        ~ ref('execution_state') ~ ' where ' ~ is_ready
    ).columns[0].values() | list | sort -%}
    with

    ready as (

        select * from {{ ref('execution_state') }}
        where {{ is_ready }}

    ),

    with_document as (

        {{ with_document(
            'ready',
            ['transport', 'errors_to'],
            days,
        ) | indent(8) }}

    ),

    ranked as (

        select
            *,
            row_number() over (partition by trigger_name order by queue_number) as queue_rank
        from with_document
        -- its landed row was found, or its resubmission brings the document
        where transport is not null or document is not null

    )

    select
        row_number() over (order by trigger_name, queue_number) as place,
        processing_mode = 'serial' as is_serial,
        current_timestamp() as started_at,
        last_event_at,
        delivery_id,
        trigger_name,
        service,
        attempts + 1 as attempt,
        queue_number,
        document_type,
        document_key,
        document,
        transport,
        errors_to,
        received_at,
        decided_at,
        is_overdue
    from ranked
    -- no document of a serial trigger is left out before it
    where processing_mode = 'concurrent' or queue_number = queue_rank
{%- endmacro %}
