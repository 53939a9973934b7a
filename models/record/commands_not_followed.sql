{{ config(materialized='ephemeral') }}
with

commands as (

    select
        *,
        coalesce(command in ('SUSPEND', 'RESUME', 'RETIRE', 'LOOKED_AT'), false) as is_known
    from {{ ref('stg_trigger_commands') }}

),

final as (

    select
        'IGNORED_COMMAND' as event,
        cast(null as string) as delivery_id,
        commands.trigger_name,
        cast(null as string) as document_type,
        commands.command_id as reference_id,
        concat(
            coalesce(commands.command, 'no command'),
            case
                when not commands.is_known
                    then ' is not followed: SUSPEND, RESUME, RETIRE and LOOKED_AT are known'
                when triggers.trigger_name is null
                    then ' is not followed: no trigger has this name'
                when triggers.is_in_seed
                    then ' is not followed: take the trigger out of seeds/triggers.csv first'
                else ' is not followed: deliveries of the trigger wait or are unfinished'
            end
        ) as message
    from commands
    left join {{ ref('triggers_this_run') }} as triggers
        on commands.trigger_name = triggers.trigger_name
    where
        not commands.is_known
        -- LOOKED_AT may name a trigger that is gone, since its doubts are still listed
        or (commands.command in ('SUSPEND', 'RESUME') and triggers.trigger_name is null)
        or (commands.command = 'RETIRE' and not coalesce(triggers.is_retired, false))

)

select * from final
