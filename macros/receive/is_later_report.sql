{% macro is_later_report(at, event, attempt, known) -%}
    {#- Whether a report of a service follows what is known of its document, though rows land in any
        order: an end does, whatever its time; others by their time, and where the writer's clock
        is behind by their attempt, or as the end of the attempt that is known as started.

        at, event, attempt: of the report; known: a relation with last_event_at, last_event and
        attempts, which are 0 where the trigger was resumed since. -#}
    coalesce(
        {{ event }} in ('SUCCESS', 'ERROR')
        or ({{ event }} is not null and {{ known }}.last_event_at is null)
        or struct({{ at }}, {{ event }} != 'STARTED')
        > struct({{ known }}.last_event_at, {{ known }}.last_event != 'STARTED')
        or (
            {{ known }}.attempts > 0
            and (
                {{ attempt }} > {{ known }}.attempts
                or (
                    {{ attempt }} = {{ known }}.attempts
                    and {{ event }} != 'STARTED'
                    and {{ known }}.last_event = 'STARTED'
                )
            )
        ),
        false
    )
{%- endmacro %}
