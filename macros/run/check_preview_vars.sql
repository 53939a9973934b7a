{% macro check_preview_vars() %}
    {#- Stop a run whose variables ask for a preview and for publication at once. -#}
    {%- for name in ['publish', 'preview_all_landed'] if var(name) is not boolean -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: variable ' ~ name ~ ' is ' ~ var(name) ~ ': use true or false'
        ) -%}
    {%- endfor -%}
    {%- for name in ['preview_triggers', 'preview_all_landed'] if var('publish') and var(name) -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ name ~ " is for a preview: add publish: false to --vars, or change "
            ~ 'seeds/triggers.csv to mean it'
        ) -%}
    {%- endfor -%}
{% endmacro %}
