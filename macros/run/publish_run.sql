{% macro publish_run() %}
    {%- if execute -%}
        {%- set news = run_query(
            "select (select count_if(not had_waited) from " ~ ref('trigger_queue') ~ ")"
            ~ " + (select count_if(is_decided) from " ~ ref('decisions') ~ ")"
            ~ " + (select count_if(has_news or ended_by is not null) from "
            ~ ref('documents_in_execution') ~ ")"
            ~ " + (select count_if(is_suspended != was_published_suspended) from "
            ~ ref('current_triggers') ~ ")"
        ).rows[0][0] -%}
        {%- do adapter.exactly_once.publish(news | int) -%}
    {%- endif -%}
{% endmacro %}
