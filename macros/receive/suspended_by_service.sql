{% macro suspended_by_service(told, on_retry_failure) -%}
    {#- Whether what a service has told of a document (see told_by_services) suspends its trigger,
        also where the document itself has been interrupted since. -#}
    coalesce(
        {{ told }}.retry_failure is not null
        and not {{ told }}.has_succeeded
        and not {{ told }}.has_failed
        and {{ on_retry_failure }} = 'suspend',
        false
    )
{%- endmacro %}
