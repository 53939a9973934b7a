{% macro spark__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
    {#- As dbt's, but a test that can find nothing in this run is not evaluated (no_rows_where). -#}
    {%- if is_without_rows(model.name) -%}
        select
            0 as failures,
            false as should_warn,
            false as should_error
    {%- else -%}
        {{ dbt.default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) }}
    {%- endif -%}
{%- endmacro %}
