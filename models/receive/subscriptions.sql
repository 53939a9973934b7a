{{ config(materialized='ephemeral') }}
with

conditions as (

    select * from {{ typed_seed('trigger_conditions') }}

),

triggers_this_run as (

    select * from {{ ref('triggers_this_run') }}

),

final as (

    select distinct
        conditions.document_type as subscribed_type,
        triggers_this_run.api as subscribed_api,
        conditions.trigger_name as subscriber
    from conditions
    inner join triggers_this_run on conditions.trigger_name = triggers_this_run.trigger_name
    where triggers_this_run.is_in_seed

)

select * from final
