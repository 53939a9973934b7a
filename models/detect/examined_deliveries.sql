{{ config(materialized='ephemeral') }}
{%- set run = current_run() -%}
{#- A resolver looks at what services have done. So in a serial trigger it is asked about a delivery
    without history only if no earlier document is unfinished, or becomes so in this run. -#}
-- depends_on: {{ ref('in_execution_this_run') }}
{% if run and not run.found.get('triggers_with_resolver') -%}
    select
        *,
        false as asks_in_order,
        cast(null as string) as waits_for_service_of,
        false as is_asked_later
    from {{ ref('ruled_deliveries') }}
{%- else -%}
    with

    ruled as (

        select
            *,
            struct(received_at, delivery_id) as age,
            has_resolver and processing_mode = 'serial' and not uses_history as asks_in_order,
            if(key_state = 'USABLE', document_key, null) as usable_key,
            service is not null and coalesce({{ is_executed() }}, false)
                as becomes_unfinished,
            -- if no resolver needs an order, each delivery is a chain of its own
            if(has_resolver and processing_mode = 'serial', null, delivery_id) as alone
        from {{ ref('ruled_deliveries') }}

    ),

    unfinished_of_keys as (

        select
            trigger_name,
            document_key,
            min(struct(received_at, delivery_id)) as first_age
        from {{ ref('in_execution_this_run') }}
        where ended_by is null
        group by trigger_name, document_key

    ),

    -- an unfinished resubmission blocks its own key only
    unfinished_of_triggers as (

        select
            trigger_name,
            min(struct(received_at, delivery_id)) as first_age
        from {{ ref('in_execution_this_run') }}
        where ended_by is null and delivery_id not like '%/resubmission-%'
        group by trigger_name

    ),

    with_unfinished as (

        select
            ruled.*,
            if(
                ruled.usable_key is null,
                least(
                    unfinished_of_triggers.first_age,
                    min(
                        if(
                            ruled.becomes_unfinished and ruled.origin != 'RESUBMISSION',
                            ruled.age,
                            null
                        )
                    ) over (partition by ruled.trigger_name, ruled.alone)
                ),
                least(
                    unfinished_of_keys.first_age,
                    min(if(ruled.becomes_unfinished, ruled.age, null)) over (
                        partition by ruled.trigger_name, ruled.alone, ruled.usable_key
                    )
                )
            ) as first_unfinished
        from ruled
        left join unfinished_of_keys
            on
                ruled.asks_in_order
                and ruled.trigger_name = unfinished_of_keys.trigger_name
                and ruled.usable_key = unfinished_of_keys.document_key
        left join unfinished_of_triggers
            on
                ruled.asks_in_order
                and ruled.trigger_name = unfinished_of_triggers.trigger_name

    ),

    with_service_before as (

        select
            *,
            if(
                needs_answer and asks_in_order and first_unfinished < age,
                first_unfinished.delivery_id,
                null
            ) as waits_for_service_of
        from with_unfinished

    ),

    final as (

        select
            * except (age, usable_key, becomes_unfinished, alone, first_unfinished),
            -- a delivery without a key is asked about after all earlier ones that are still to be
            -- asked about
            coalesce(
                min(
                    if(
                        needs_answer and usable_key is not null and waits_for_service_of is null,
                        age,
                        null
                    )
                ) over (partition by trigger_name, alone) < age
                and asks_in_order
                and usable_key is null,
                false
            ) as is_asked_later
        from with_service_before

    )

    select * from final
{%- endif %}
