{% macro suspended_by_service(reported, on_retry_failure) -%}
    {#- Whether what a service has reported of a document (see reported_by_services) suspends its
        trigger, also where the document itself has been interrupted since. -#}
    coalesce(
        {{ reported }}.retry_failure is not null
        and not {{ reported }}.has_succeeded
        and not {{ reported }}.has_failed
        and {{ on_retry_failure }} = 'suspend',
        false
    )
{%- endmacro %}
