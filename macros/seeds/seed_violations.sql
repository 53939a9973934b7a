{% macro seed_violations(triggers=none) -%}
    {#- One row per wrong value in a configuration seed: seed, row, what is wrong and what to do. A
        value is wrong where it is not blank and seed_value, which reads it, gives nothing. -#}
    {%- set triggers = triggers or ref('triggers') -%}
    {%- set conditions = ref('trigger_conditions') -%}
    {%- set transports = ref('transports') -%}
    {%- set registered = {
        'resolver': adapter.exactly_once.hook_names('resolver'),
        'resource_monitor': adapter.exactly_once.hook_names('resource_monitor'),
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
                {% for setting, (type, default) in trigger_defaults().items()
                    if type != 'string' or setting in seed_words() -%}
                if(
                    trim({{ setting }}) != ''
                    and {{ seed_value(setting, type, setting) }} is null,
                    concat(
                        '{{ setting }} is ', {{ setting }}, ': use
                        {%- if setting in seed_words() %} {{ seed_words()[setting] | join(" or ") }}
                        {%- elif type == 'boolean' %} true or false
                        {%- elif type == 'timestamp' %} a time such as 2026-01-31 12:00:00 (UTC)
                        {%- else %} a whole number, 0 or more{% endif %}'
                    ),
                    null
                ),
                {% endfor -%}
                {% for kind, names in registered.items() -%}
                if(
                    not array_contains(
                        cast(array(
                            {%- for name in names %}{{ sql_text(name) }}{{ ', ' if not loop.last }}{% endfor -%}
                        ) as array<string>),
                        {{ seed_value(kind, 'string', kind) }}
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
            concat('trigger ', trim(trigger_name)),
            'the name stands there more than once: name every trigger differently'
        from {{ triggers }}
        group by trim(trigger_name)
        having count(*) > 1
        union all
        select
            'trigger_conditions',
            concat('condition ', coalesce(position, '(no position)'), ' of trigger ', coalesce(trigger_name, '(none)')),
            explode(array(
                if(
                    {{ seed_value('position', 'int', 'position') }} is null,
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
            left join (select distinct trim(trigger_name) as trigger_name from {{ triggers }})
                as triggers
                on trim(conditions.trigger_name) = triggers.trigger_name
        )
        union all
        select
            'trigger_conditions',
            concat('condition ', position, ' of trigger ', trigger_name),
            'two conditions stand in one position: number them differently'
        from {{ conditions_of_seed() }}
        where position is not null
        group by trigger_name, position
        having count(*) > 1
        union all
        select
            'trigger_conditions',
            concat('condition ', condition_name, ' of trigger ', trigger_name),
            'the name stands there more than once in this trigger: name every condition differently'
        from {{ conditions_of_seed() }}
        group by trigger_name, condition_name
        having count(*) > 1
        union all
        select
            'transports',
            concat('transport ', coalesce(transport, '(no name)')),
            explode(array(
                if(
                    {{ seed_value('api', 'string', 'api') }} is null,
                    concat('api is ', coalesce(api, 'blank'), ': use MSG or JMS'),
                    null
                ),
                if(
                    {{ seed_value('counts_deliveries', 'boolean', 'counts_deliveries') }} is null,
                    'counts_deliveries is neither true nor false',
                    null
                ),
                if(
                    {{ seed_value('counts_deliveries', 'boolean', 'counts_deliveries') }}
                    and {{ seed_value('first_delivery_count', 'int', 'first_delivery_count') }}
                    is null,
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
        from {{ transports_of_seed() }}
        group by transport
        having count(*) > 1
    )
    where problem is not null
    order by seed, place, problem
{%- endmacro %}
