{% macro seed_violations(triggers=none) -%}
    {#- One row per wrong value in a configuration seed: seed, row, what is wrong and what to do.
        The rules are those of seed_rules. triggers: what to look at in place of that seed. -#}
    {%- set relations = {
        'triggers': triggers or ref('triggers'),
        'trigger_conditions': ref('trigger_conditions'),
        'transports': ref('transports'),
    } -%}
    select seed, row_name, problem
    from (
        {% for seed, rules in seed_rules().items() -%}
        select
            '{{ seed }}' as seed,
            {{ row_of_seed(rules['row_name']) }} as row_name,
            explode(array(
                {% for cell in rules['cells'] -%}
                {%- set value = seed_value(cell['column'], cell['type'], cell['column']) -%}
                {%- set names = adapter.exactly_once.hook_names(cell['column']) if cell['registered'] -%}
                if(
                    {% if cell['registered'] -%}
                    not array_contains(
                        cast(array(
                            {%- for name in names %}{{ sql_text(name) }}{{ ', ' if not loop.last }}{% endfor -%}
                        ) as array<string>),
                        {{ value }}
                    ),
                    {%- else -%}
                    {{ value }} is null
                    {%- if cell['may_be_blank'] %} and trim({{ cell['column'] }}) != ''{% endif %}
                    {%- if cell['where'] %} and {{ seed_value(cell['where'], 'boolean', cell['where']) }}{% endif -%}
                    ,
                    {%- endif %}
                    replace(
                        {{ sql_text(cell['problem'] ~ ((names + ['none']) | join(' or ') if cell['registered'] else '')) }},
                        '{value}',
                        coalesce({{ cell['column'] }}, 'blank')
                    ),
                    null
                ){{ ',' if not loop.last }}
                {% endfor -%}
            )) as problem
        from {{ relations[seed] }}
        {% if rules['refers_to'] -%}
        {%- set column, other = rules['refers_to']['column'], rules['refers_to']['seed'] -%}
        union all
        select '{{ seed }}', {{ row_of_seed(rules['row_name']) }}, {{ sql_text(rules['refers_to']['problem']) }}
        from {{ relations[seed] }} as referring
        left anti join (select trim({{ column }}) as known from {{ relations[other] }})
            on trim(referring.{{ column }}) = known
        {% endif -%}
        {% for unique in rules['unique'] -%}
        union all
        select '{{ seed }}', {{ row_of_seed(unique['row_name']) }}, {{ sql_text(unique['problem']) }}
        from (
            select
                {% for column, type in unique['columns'].items() -%}
                {{ seed_value(column, type, column) }} as {{ column }}{{ ',' if not loop.last }}
                {% endfor %}
            from {{ relations[seed] }}
        )
        where {{ unique['columns'] | join(' is not null and ') }} is not null
        group by {{ unique['columns'] | join(', ') }}
        having count(*) > 1
        {% endfor -%}
        {{ 'union all' if not loop.last }}
        {% endfor %}
    )
    where problem is not null
    order by seed, row_name, problem
{%- endmacro %}
