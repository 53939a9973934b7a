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
