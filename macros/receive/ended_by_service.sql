{% macro ended_by_service(told, on_retry_failure) -%}
    {#- How a document has ended by what its service has told (see told_by_services); null where it
        has not. A success rules, whatever else was told. -#}
    case
        when {{ told }}.has_succeeded then 'SUCCESS'
        when {{ told }}.has_failed then 'ERROR'
        when {{ told }}.retry_failure is not null and {{ on_retry_failure }} = 'throw'
            then 'RETRIES_EXHAUSTED'
    end
{%- endmacro %}
