{% macro seed_value(setting, type, text) -%}
    {#- The value of a cell of a seed, as its type; null where it is blank, and where it
        cannot be read, which check_seeds refuses (SeedCheck.value is the same in Python).
        Blanks around a value and the case of its letters mean nothing; a name keeps its case.

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
