{% macro seed_rules() %}
    {#- What must hold of each configuration seed, as data: seed_violations makes SQL of it, and
        `exactly-once check` reads it without Spark. Of each seed:

        row_name: how a row is named, as pairs of words and a column.
        cells: a cell whose value cannot be read (see seed_value) has the problem; so has a blank
        one, unless may_be_blank, and where `where` names a column only if that one says true. Of
        `registered` cells the value is also the name of a function of python_udfs.
        unique: columns, each with its type, whose values no two rows share.
        refers_to: a column whose values must stand in the same column of another seed. -#}
    {%- set words = seed_words() -%}
    {%- set uses = {
        'boolean': 'true or false',
        'timestamp': 'a time such as 2026-01-31 12:00:00 (UTC)',
        'int': 'a whole number, 0 or more',
        'bigint': 'a whole number, 0 or more',
    } -%}
    {%- set settings = [{
        'column': 'trigger_name', 'type': 'string',
        'problem': 'trigger_name is blank: give every trigger a name',
    }] -%}
    {%- for setting, (type, default) in trigger_defaults().items()
        if type != 'string' or setting in words -%}
        {%- set use = words[setting] | join(' or ') if setting in words else uses[type] -%}
        {%- do settings.append({
            'column': setting, 'type': type, 'may_be_blank': true,
            'problem': setting ~ ' is {value}: use ' ~ use,
        }) -%}
    {%- endfor -%}
    {%- for kind in ['resolver', 'resource_monitor'] -%}
        {%- do settings.append({
            'column': kind, 'type': 'string', 'may_be_blank': true, 'registered': true,
            'problem': kind ~ ' is {value}, which no module of python_udfs registers: use ',
        }) -%}
    {%- endfor -%}
    {{ return({
        'triggers': {
            'row_name': [('trigger ', 'trigger_name')],
            'cells': settings,
            'unique': [{
                'columns': {'trigger_name': 'string'},
                'row_name': [('trigger ', 'trigger_name')],
                'problem': 'the name stands there more than once: name every trigger differently',
            }],
        },
        'trigger_conditions': {
            'row_name': [('condition ', 'position'), (' of trigger ', 'trigger_name')],
            'cells': [
                {
                    'column': 'position', 'type': 'int',
                    'problem': 'position is no whole number: number the conditions of a trigger',
                },
                {
                    'column': 'condition_name', 'type': 'string',
                    'problem': 'condition_name is blank: give every condition a name',
                },
                {
                    'column': 'document_type', 'type': 'string',
                    'problem': 'document_type is blank: name the type that the condition takes',
                },
            ],
            'refers_to': {
                'column': 'trigger_name', 'seed': 'triggers',
                'problem': 'no such trigger in the seed triggers: add it there or correct the name',
            },
            'unique': [
                {
                    'columns': {'trigger_name': 'string', 'position': 'int'},
                    'row_name': [('condition ', 'position'), (' of trigger ', 'trigger_name')],
                    'problem': 'two conditions stand in one position: number them differently',
                },
                {
                    'columns': {'trigger_name': 'string', 'condition_name': 'string'},
                    'row_name': [
                        ('condition ', 'condition_name'), (' of trigger ', 'trigger_name')
                    ],
                    'problem': 'the name stands there more than once in this trigger: name every '
                        ~ 'condition differently',
                },
            ],
        },
        'transports': {
            'row_name': [('transport ', 'transport')],
            'cells': [
                {
                    'column': 'api', 'type': 'string',
                    'problem': 'api is {value}: use ' ~ words['api'] | join(' or '),
                },
                {
                    'column': 'counts_deliveries', 'type': 'boolean',
                    'problem': 'counts_deliveries is neither true nor false',
                },
                {
                    'column': 'first_delivery_count', 'type': 'int', 'where': 'counts_deliveries',
                    'problem': 'first_delivery_count is no whole number: say what the first '
                        ~ 'delivery reads',
                },
            ],
            'unique': [{
                'columns': {'transport': 'string'},
                'row_name': [('transport ', 'transport')],
                'problem': 'the name stands there more than once: name every transport once',
            }],
        },
    }) }}
{% endmacro %}
