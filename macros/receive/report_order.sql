{% macro report_order(event, attempt, at, resumed_at) -%}
    {#- By which the reports of a service are ordered, whatever order their rows land in: an end
        rules, then the later attempt, then the later time. Attempts until the trigger was resumed
        count as none. Clocks of two hosts may differ: by its attempt a retry stays at work that
        began, by its clock, before the failure that it follows. -#}
    named_struct(
        'is_final', {{ event }} in ('SUCCESS', 'ERROR'),
        'attempt', if({{ at }} <= {{ resumed_at }}, 0, coalesce({{ attempt }}, 0)),
        'at', {{ at }},
        'is_end', {{ event }} != 'STARTED'
    )
{%- endmacro %}
