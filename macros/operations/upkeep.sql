{% macro maintain() %}
    {%- for line in operations().maintain() -%}
        {%- do log('exactly_once: ' ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}

{% macro remove_expired_history() %}
    {%- set done = operations().remove_expired_history(has_expired("timestamp '{bound}'")) -%}
    {%- do log('exactly_once: ' ~ done, info=true) -%}
{% endmacro %}
