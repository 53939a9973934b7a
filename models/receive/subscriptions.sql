{{ config(materialized='ephemeral') }}
with

conditions as (

    select * from {{ conditions_of_seed() }}

),

current_triggers as (

    select * from {{ ref('current_triggers') }}

),

final as (

    select distinct
        conditions.document_type as subscribed_type,
        current_triggers.api as subscribed_api,
        conditions.trigger_name as subscriber
    from conditions
    inner join current_triggers on conditions.trigger_name = current_triggers.trigger_name
    where current_triggers.is_in_seed

)

select * from final
