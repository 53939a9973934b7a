with

grouped as (

    select
        trigger_name,
        service,
        cause,
        message_shape,
        count(*) as documents,
        min(failed_at) as first_failed_at,
        max(failed_at) as last_failed_at,
        -- the wildcards of LIKE that the message itself holds stand for themselves
        replace(regexp_replace(message_shape, '([%_\\\\])', '\\\\$1'), '#', '%')
            as message_pattern
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

        -- the command that resubmits the group
        {{ operation_command('resubmit', {
            'trigger_name': 'trigger_name',
            'service': 'service',
            'cause': 'cause',
            'message_like': 'message_pattern',
        }) | indent(8) }} as resubmit_command
    from grouped

)

select * from final
