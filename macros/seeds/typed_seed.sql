{% macro typed_seed(seed) -%}
    {#- A relation of a seed's rows with typed values, see seed_value; for seeds/triggers.csv use
        trigger_settings. -#}
    {%- set types = {
        'transports': {
            'transport': 'string', 'api': 'string',
            'counts_deliveries': 'boolean', 'first_delivery_count': 'int',
        },
        'trigger_conditions': {
            'position': 'int', 'trigger_name': 'string', 'condition_name': 'string',
            'document_type': 'string', 'filter': 'string', 'service': 'string',
        },
    }[seed] -%}
    (
        select
            {% for name, type in types.items() -%}
                {{ seed_value(name, type, '`' ~ name ~ '`') }} as `{{ name }}`
                {{- ',' if not loop.last }}
            {% endfor %}
        from {{ ref(seed) }}
    )
{%- endmacro %}

{% macro seed_value(setting, type, text) -%}
    {#- The value of a cell of a seed, as its type; null if it is blank or cannot be read.
        check_seeds refuses a value that cannot be read (SeedCheck.value is the same in Python).
        Blanks around a value and the case of a word are ignored; a name keeps its case.

        setting: the column, see seed_words; type: of Spark; text: an expression over the cell. -#}
    {%- set text = 'trim(' ~ text ~ ')' -%}
    {%- set words = ['true', 'false'] if type == 'boolean' else seed_words().get(setting, []) -%}
    {%- if words -%}
        {#- the first lower() of a session costs a moment: Spark lists all lower-case characters -#}
        cast(case
            {%- for word in words %}
            when {{ text }} rlike '(?s)^(?i:{{ word }})(?!.)' then '{{ word }}'
            {%- endfor %}
        end as {{ type }})
    {%- elif type in ['int', 'bigint'] -%}
        if({{ text }} rlike '^[0-9]+$', try_cast({{ text }} as {{ type }}), null)
    {%- elif setting in ['resolver', 'resource_monitor'] -%}
        {#- `none` or nothing; `$` in place of (?!.) would match before a line end too -#}
        if({{ text }} rlike '(?s)^(?i:none)?(?!.)', null, {{ text }})
    {%- elif type == 'string' -%}
        nullif({{ text }}, '')
    {%- else -%}
        try_cast({{ text }} as {{ type }})
    {%- endif -%}
{%- endmacro %}
