{% macro greatest_received_at() -%}
    {#- The greatest received_at ever consumed, as a scalar; null where nothing was. -#}
    {%- set run = current_run() -%}
    {%- set earlier = run.greatest_received_at if run else none -%}
    greatest(
        {{ "timestamp '" ~ earlier ~ "'" if earlier else 'cast(null as timestamp)' }},
        {% if not run or not run.knows_queue -%}
            ({{ latest_in_queue() }})
        {%- elif run.latest_in_queue -%}
            timestamp '{{ run.latest_in_queue }}'
        {%- else -%}
            cast(null as timestamp)
        {%- endif %}
    )
{%- endmacro %}
