{% macro operation_command(operation, arguments) -%}
    {#- A command of `dbt run-operation` to copy, as text. The arguments are JSON, which is valid
        YAML, in single quotes of bash: no id is read as anything else.

        arguments: SQL expressions of texts, by name. -#}
    concat(
        'dbt run-operation {{ operation }} --args \'',
        replace(
            to_json(
                named_struct(
                    {% for name, value in arguments.items() -%}
                        '{{ name }}', {{ value }}{{ ',' if not loop.last }}
                    {% endfor %}
                )
            ),
            '\'',
            '\'\\\'\''
        ),
        '\''
    )
{%- endmacro %}

{% macro as_literal(text) -%}
    {#- A text as a literal of SQL, for a query to copy; sql_text does it for a value of Jinja. -#}
    concat('\'', replace(replace({{ text }}, '\\', '\\\\'), '\'', '\\\''), '\'')
{%- endmacro %}
