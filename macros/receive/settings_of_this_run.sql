{% macro settings_of_this_run() -%}
    {#- trigger_settings, changed as a preview asks
        (`preview_triggers: {orders: {use_history: true}}`). -#}
    {%- set previewed = var('preview_triggers') or {} -%}
    {#- a trigger may be previewed with all of its settings as they are -#}
    {%- if not previewed.values() | select | list -%}
        {{ ref('trigger_settings') }}
    {%- else -%}
        {%- set columns = {} -%}
        {%- for setting, (type, default) in trigger_defaults().items() -%}
            {%- set cases = [] -%}
            {%- for trigger, settings in previewed.items() if setting in settings -%}
                {%- set value = seed_value(setting, type, sql_text(settings[setting])) -%}
                {%- if default is not none -%}
                    {%- set value = 'coalesce(' ~ value ~ ', cast(' ~ sql_text(default) ~ ' as '
                        ~ type ~ '))' -%}
                {%- endif -%}
                {%- do cases.append(
                    'when trigger_name = ' ~ sql_text(trigger) ~ ' then ' ~ value
                ) -%}
            {%- endfor -%}
            {%- if cases -%}
                {%- do columns.update(
                    {setting: 'case ' ~ cases | join(' ') ~ ' else ' ~ setting ~ ' end'}
                ) -%}
            {%- endif -%}
        {%- endfor -%}
        (
            select
                * except (suspends_on_error),
                suspend_on_preprocessing_error or on_retry_failure = 'suspend' as suspends_on_error
            from (
                select
                    * except ({{ columns.keys() | join(', ') }}),
                    {% for setting, text in columns.items() -%}
                        {{ text }} as {{ setting }}{{ ',' if not loop.last }}
                    {% endfor %}
                from {{ ref('trigger_settings') }}
            )
        )
    {%- endif -%}
{%- endmacro %}
