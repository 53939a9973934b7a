{% macro seed_violations(triggers=none) -%}
    {#- One row per wrong value in a configuration seed: seed, row, what is wrong and what to do.
        The rules are those of seed_rules. triggers: what to look at in place of that seed. -#}
    {%- set relations = {
        'triggers': triggers or ref('triggers'),
        'trigger_conditions': ref('trigger_conditions'),
        'transports': ref('transports'),
    } -%}
    select seed, place, problem
    from (
        {% for seed, rules in seed_rules().items() -%}
        select
            '{{ seed }}' as seed,
            {{ row_of_seed(rules['place']) }} as place,
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
        select '{{ seed }}', {{ row_of_seed(rules['place']) }}, {{ sql_text(rules['refers_to']['problem']) }}
        from {{ relations[seed] }} as referring
        left anti join (select trim({{ column }}) as known from {{ relations[other] }})
            on trim(referring.{{ column }}) = known
        {% endif -%}
        {% for unique in rules['unique'] -%}
        union all
        select '{{ seed }}', {{ row_of_seed(unique['place']) }}, {{ sql_text(unique['problem']) }}
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
    order by seed, place, problem
{%- endmacro %}


{% macro row_of_seed(parts) -%}
    {#- How a message names a row. parts: pairs of words and a column, see seed_rules. -#}
    concat(
        {%- for words, column in parts -%}
            '{{ words }}', coalesce({{ column }}, '(none)'){{ ', ' if not loop.last }}
        {%- endfor -%}
    )
{%- endmacro %}


{% macro filter_problems() %}
    {#- A line for each filter and each key that Spark cannot use over the columns of a delivery. -#}
    {%- set deliveries = source('landing', 'deliveries') | string -%}
    {%- set problems = [] -%}
    {%- set expressions -%}
        select
            concat(
                'seed trigger_conditions, condition ', position, ' of trigger ', trigger_name,
                ': the filter '
            ) as place,
            filter as expression,
            true as is_filter
        from {{ conditions_of_seed() }}
        where filter is not null
        union all
        select
            concat('seed triggers, trigger ', trigger_name, ': the key '),
            key,
            false
        from (
            select
                trigger_name,
                {{ seed_value('key', 'string', 'key') }} as key
            from {{ ref('triggers') }}
        )
        where key is not null
        order by place, expression
    {%- endset -%}
    {%- for row in run_query(expressions).rows -%}
        {%- set problem = adapter.exactly_once.expression_problem(row[1], deliveries, row[2]) -%}
        {%- if problem -%}
            {%- do problems.append(row[0] ~ row[1] ~ ' cannot be used, correct it: ' ~ problem) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(problems) }}
{% endmacro %}


{% macro preview_violations() -%}
    {#- A text for each wrong entry of the variable preview_triggers, as a wrong value in
        seeds/triggers.csv has one. -#}
    {%- set previewed = var('preview_triggers') -%}
    {%- set problems = [] -%}
    {%- if previewed -%}
        {%- set known = run_query(
            'select trim(trigger_name) from ' ~ ref('triggers') ~ ' order by 1'
        ).columns[0].values() -%}
        {%- set rows = [] -%}
        {%- for trigger, settings in previewed.items() -%}
            {%- if trigger not in known -%}
                {%- do problems.append(
                    'preview_triggers: no trigger is named ' ~ trigger ~ '; seeds/triggers.csv has '
                    ~ known | join(', ')
                ) -%}
            {%- endif -%}
            {%- for setting in settings if setting not in trigger_defaults() -%}
                {%- do problems.append(
                    'preview_triggers, trigger ' ~ trigger ~ ': ' ~ setting
                    ~ ' is no setting; they are ' ~ trigger_defaults().keys() | join(', ')
                ) -%}
            {%- endfor -%}
            {%- set values = [sql_text(trigger) ~ ' as trigger_name'] -%}
            {%- for setting in trigger_defaults() -%}
                {%- do values.append(
                    'cast(' ~ sql_text(settings.get(setting)) ~ ' as string) as ' ~ setting
                ) -%}
            {%- endfor -%}
            {%- do rows.append('select ' ~ values | join(', ')) -%}
        {%- endfor -%}
        {%- for row in run_query(seed_violations('(' ~ rows | join(' union all ') ~ ')')).rows
            if row[0] == 'triggers' -%}
            {%- do problems.append('preview_triggers, ' ~ row[1] ~ ': ' ~ row[2]) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(problems) }}
{%- endmacro %}
