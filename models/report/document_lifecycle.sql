-- depends_on: {{ ref('published_runs') }}
with

states as (

    select * from {{ ref('steps_of_decisions') }}
    union all
    select * from {{ ref('steps_of_executions') }}

),

-- sorted by the run that observed a state and its turn within that run, since clocks differ
numbered as (

    {% set in_order -%}
        partition by trigger_name, delivery_id
        order by run_number, turn, happened_at, if(state = 'STARTED', 0, 1), attempt
    {%- endset -%}
    select
        *,
        row_number() over ({{ in_order }}) as step,
        lag(state) over ({{ in_order }}) as from_state
    from states

),

-- the document that a duplicate repeats
originals as (

    select
        duplicates.trigger_name,
        duplicates.delivery_id,
        outcomes.outcome as original_outcome,
        outcomes.result as original_result,
        outcomes.ended_at as original_ended_at
    from {{ ref('document_status') }} as duplicates
    inner join {{ ref('document_outcomes') }} as outcomes
        on
            duplicates.matched_delivery_id = outcomes.delivery_id
            and duplicates.trigger_name = outcomes.trigger_name
    where duplicates.status = 'DUPLICATE'

),

final as (

    select
        -- ids
        numbered.trigger_name,
        numbered.delivery_id,
        {{ landed_delivery_id('numbered.delivery_id') }} as landed_delivery_id,

        -- what
        numbered.step,
        numbered.from_state,
        numbered.state,
        numbered.cause,
        numbered.attempt,
        originals.original_outcome,
        originals.original_result,

        -- times
        numbered.happened_at,
        originals.original_ended_at
    from numbered
    left join originals
        on
            numbered.state = 'DUPLICATE'
            and numbered.trigger_name = originals.trigger_name
            and numbered.delivery_id = originals.delivery_id

)

select * from final
