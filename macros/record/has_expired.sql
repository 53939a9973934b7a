{% macro has_expired(bound=none) -%}
    {#- Which entries of history have expired for good. bound: up to which expiry history is
        removed, SQL; this run's where there is none. -#}
    expires_at < {{ bound or history_removal_bound() }}
{%- endmacro %}
