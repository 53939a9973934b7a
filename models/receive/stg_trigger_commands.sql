with

landed as (

    select
        *,
        _file as landed_file,
        _pos as landed_position
    from {{ landed_since_last_run('trigger_commands') }}

),

ranked as (

    select
        *,
        row_number() over (
            partition by command_id order by landed_file, landed_position
        ) as arrival
    from landed

),

final as (

    select * except (arrival, landed_file, landed_position)
    from ranked
    where arrival = 1

)

select * from final
