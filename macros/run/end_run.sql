{% macro end_run(results) %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set run = adapter.exactly_once.end() -%}
        {%- if run is not none -%}
            {%- if run.published -%}
                {%- do log('exactly_once: ' ~ run.said | join('; '), info=true) -%}
            {%- elif run.said -%}
                {%- do log('exactly_once: ' ~ run.said | join('; '), info=true) -%}
            {%- else -%}
                {%- do log('exactly_once: nothing was published; the ledgers are as before', info=true) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
