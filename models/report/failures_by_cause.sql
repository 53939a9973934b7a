with

grouped as (

    select
        trigger_name,
        service,
        cause,
        message_shape,
        count(*) as documents,
        min(failed_at) as first_failed_at,
        max(failed_at) as last_failed_at
    from {{ ref('failed_documents') }}
    group by trigger_name, service, cause, message_shape

),

final as (

    select
        -- what
        trigger_name,
        service,
        cause,
        message_shape,

        -- counts
        documents,

        -- times
        first_failed_at,
        last_failed_at,

        -- the command that resubmits the group; in JSON, which YAML reads, in single quotes of bash
        concat(
            'dbt run-operation resubmit --args \'',
            replace(
                to_json(
                    named_struct(
                        'trigger_name', trigger_name,
                        'service', service,
                        'cause', cause,
                        -- the wildcards of LIKE that the message itself holds stand for themselves
                        'message_like', replace(
                            regexp_replace(message_shape, '([%_\\\\])', '\\\\$1'), '#', '%'
                        )
                    )
                ),
                '\'',
                '\'\\\'\''
            ),
            '\''
        ) as resubmit_command
    from grouped

)

select * from final
