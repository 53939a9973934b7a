{% macro end_run(results) %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set run = adapter.exactly_once.end(
            var('maintain_every_runs') | int, retention()
        ) -%}
        {%- if run is not none -%}
            {%- set messages = run.messages or ['nothing was published; the ledgers are as before'] -%}
            {%- set seconds = (modules.datetime.datetime.now(modules.pytz.utc)
                - run_started_at).total_seconds() -%}
            {%- for line in messages + warning_lines(results) + ['took %.0f s' | format(seconds)] -%}
                {%- do log('exactly_once: ' ~ line, info=true) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
