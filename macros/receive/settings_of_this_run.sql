{% macro settings_of_this_run() -%}
    {#- trigger_settings, with other settings where a preview asks for them
        (`preview_triggers: {orders: {use_history: true}}`). -#}
    {%- set previewed = var('preview_triggers') -%}
    {%- if not previewed -%}
        {{ ref('trigger_settings') }}
    {%- else -%}
        {%- set columns = {} -%}
        {%- for setting, (type, default) in trigger_defaults().items() -%}
            {%- set cases = [] -%}
            {%- for trigger, settings in previewed.items() if setting in settings -%}
                {%- set text = sql_text(settings[setting] | string | lower
                    if settings[setting] is boolean else settings[setting]) -%}
                {%- if setting in ['resolver', 'resource_monitor'] -%}
                    {%- set text = "nullif(" ~ text ~ ", 'none')" -%}
                {%- endif -%}
                {%- do cases.append(
                    'when trigger_name = ' ~ sql_text(trigger) ~ ' then cast(' ~ text ~ ' as '
                    ~ type ~ ')'
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
                coalesce(suspend_on_preprocessing_error, false)
                or coalesce(on_retry_failure = 'suspend', false) as suspends_on_error
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
