{% macro operation_command(operation, arguments) -%}
    {#- A command of `dbt run-operation` to copy, as text. Ids are not read as anything else: they
        stand in JSON, which YAML reads, in single quotes of bash.

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
    {#- A text as a literal of SQL, for a query to copy; sql_text does it for what Jinja knows. -#}
    concat('\'', replace(replace({{ text }}, '\\', '\\\\'), '\'', '\\\''), '\'')
{%- endmacro %}
