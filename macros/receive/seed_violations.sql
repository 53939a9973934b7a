{% macro seed_violations(triggers=none) -%}
    {#- One row per wrong value in a configuration seed: seed, row, what is wrong and what to do. -#}
    {%- set triggers = triggers or ref('triggers') -%}
    {%- set conditions = ref('trigger_conditions') -%}
    {%- set transports = ref('transports') -%}
    {%- set registered = {
        'resolver': adapter.exactly_once.hook_names('resolver'),
        'resource_monitor': adapter.exactly_once.hook_names('resource_monitor'),
    } -%}
    {%- set one_of = {
        'api': ['MSG', 'JMS'],
        'acknowledgement_mode': [
            'CLIENT_ACKNOWLEDGE', 'TRANSACTED', 'AUTO_ACKNOWLEDGE', 'DUPS_OK_ACKNOWLEDGE'
        ],
        'processing_mode': ['serial', 'concurrent'],
        'on_retry_failure': ['throw', 'suspend'],
    } -%}
    select seed, place, problem
    from (
        select
            'triggers' as seed,
            concat('trigger ', coalesce(trigger_name, '(no name)')) as place,
            explode(array(
                if(
                    coalesce(trim(trigger_name), '') = '',
                    'trigger_name is blank: give every trigger a name',
                    null
                ),
                {% for setting, (type, default) in trigger_defaults().items() -%}
                    {%- if setting in one_of %}
                if(
                    trim({{ setting }}) != ''
                    and trim({{ setting }}) not in (
                        {%- for value in one_of[setting] %}{{ sql_text(value) }}{{ ', ' if not loop.last }}{% endfor -%}
                    ),
                    concat('{{ setting }} is ', {{ setting }}, ': use {{ one_of[setting] | join(" or ") }}'),
                    null
                ),
                    {%- elif type != 'string' %}
                if(
                    trim({{ setting }}) != ''
                    and (
                        try_cast(trim({{ setting }}) as {{ type }}) is null
                        {% if type == 'boolean' -%}
                        {#- lower() would make Spark list the lower case of all characters #}
                        or not trim({{ setting }}) rlike '(?s)^(?i:true|false)(?!.)'
                        {%- elif type in ['int', 'bigint'] -%}
                        or try_cast(trim({{ setting }}) as {{ type }}) < 0
                        or not trim({{ setting }}) rlike '^[0-9]+$'
                        {%- endif %}
                    ),
                    concat(
                        '{{ setting }} is ', {{ setting }}, ': use
                        {%- if type == 'boolean' %} true or false
                        {%- elif type == 'timestamp' %} a time such as 2026-01-31 12:00:00 (UTC)
                        {%- else %} a whole number, 0 or more{% endif %}'
                    ),
                    null
                ),
                    {%- endif -%}
                {%- endfor %}
                {% for kind, names in registered.items() -%}
                if(
                    trim({{ kind }}) not in (
                        'none', ''
                        {%- for name in names %}, {{ sql_text(name) }}{% endfor -%}
                    ),
                    concat(
                        '{{ kind }} is ', {{ kind }}, ', which no module of python_udfs registers: ',
                        {{ sql_text('use ' ~ (names + ['none']) | join(' or ')) }}
                    ),
                    null
                ){{ ',' if not loop.last }}
                {% endfor -%}
            )) as problem
        from {{ triggers }}
        union all
        select
            'triggers',
            concat('trigger ', trigger_name),
            'the name stands there more than once: name every trigger differently'
        from {{ triggers }}
        group by trigger_name
        having count(*) > 1
        union all
        select
            'trigger_conditions',
            concat('condition ', coalesce(position, '(no position)'), ' of trigger ', coalesce(trigger_name, '(none)')),
            explode(array(
                if(
                    coalesce(trim(position), '') not rlike '^[0-9]+$' or try_cast(position as int) is null,
                    'position is no whole number: number the conditions of a trigger',
                    null
                ),
                if(
                    coalesce(trim(condition_name), '') = '',
                    'condition_name is blank: give every condition a name',
                    null
                ),
                if(
                    coalesce(trim(document_type), '') = '',
                    'document_type is blank: name the type that the condition takes',
                    null
                ),
                if(
                    not is_known,
                    'no such trigger in the seed triggers: add it there or correct the name',
                    null
                )
            ))
        from (
            select
                conditions.*,
                triggers.trigger_name is not null as is_known
            from {{ conditions }} as conditions
            left join (select distinct trigger_name from {{ triggers }}) as triggers
                on conditions.trigger_name = triggers.trigger_name
        )
        union all
        select
            'trigger_conditions',
            concat('condition ', cast(try_cast(position as int) as string), ' of trigger ', trigger_name),
            'two conditions stand in one position: number them differently'
        from {{ conditions }}
        where try_cast(position as int) is not null
        group by trigger_name, try_cast(position as int)
        having count(*) > 1
        union all
        select
            'trigger_conditions',
            concat('condition ', condition_name, ' of trigger ', trigger_name),
            'the name stands there more than once in this trigger: name every condition differently'
        from {{ conditions }}
        group by trigger_name, condition_name
        having count(*) > 1
        union all
        select
            'transports',
            concat('transport ', coalesce(transport, '(no name)')),
            explode(array(
                if(
                    coalesce(api, '') not in ('MSG', 'JMS'),
                    concat('api is ', coalesce(api, 'blank'), ': use MSG or JMS'),
                    null
                ),
                if(
                    coalesce(counts_deliveries, '') not in ('true', 'false'),
                    'counts_deliveries is neither true nor false',
                    null
                ),
                if(
                    counts_deliveries = 'true'
                    and coalesce(first_delivery_count, '') not rlike '^[0-9]+$',
                    'first_delivery_count is no whole number: say what the first delivery reads',
                    null
                )
            ))
        from {{ transports }}
        union all
        select
            'transports',
            concat('transport ', transport),
            'the name stands there more than once: name every transport once'
        from {{ transports }}
        group by transport
        having count(*) > 1
    )
    where problem is not null
    order by seed, place, problem
{%- endmacro %}
