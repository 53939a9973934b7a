{% macro ended_by_service(reported, on_retry_failure) -%}
    {#- How a document has ended by what its service has reported (see reported_by_services); null
        where it has not. A success rules, whatever else was reported. -#}
    case
        when {{ reported }}.has_succeeded then 'SUCCESS'
        when {{ reported }}.has_failed then 'ERROR'
        when {{ reported }}.retry_failure is not null and {{ on_retry_failure }} = 'throw'
            then 'RETRIES_EXHAUSTED'
    end
{%- endmacro %}
