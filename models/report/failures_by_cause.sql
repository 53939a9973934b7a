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

        -- the command that resubmits the group
        {{ operation_command('resubmit', {
            'trigger_name': 'trigger_name',
            'service': 'service',
            'cause': 'cause',
            'message_shape': 'message_shape',
        }) | indent(8) }} as resubmit_command
    from grouped

)

select * from final
