{% macro failed_documents_like(trigger_name, service, cause, message_like, since, until) -%}
    {#- A query of the failed documents that an operator names; none of the conditions: all of them. -#}
    select * from {{ ref('failed_documents') }}
    where
        true
        {%- if trigger_name is not none %} and trigger_name = {{ sql_text(trigger_name) }}{% endif %}
        {%- if service is not none %} and service = {{ sql_text(service) }}{% endif %}
        {%- if cause is not none %} and cause = {{ sql_text(cause) }}{% endif %}
        {%- if message_like is not none %} and message like {{ sql_text(message_like) }}{% endif %}
        {%- if since is not none %} and failed_at >= cast({{ sql_text(since | string) }} as timestamp){% endif %}
        {%- if until is not none %} and failed_at < cast({{ sql_text(until | string) }} as timestamp){% endif %}
{%- endmacro %}
