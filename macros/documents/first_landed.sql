{% macro first_landed(table, id) -%}
    {#- The rows of a landed table that no run has consumed: of each id the first that landed. -#}
    {%- set landed = landed_since_last_run(table) -%}
    select * except (arrival, landed_commit, landed_file, landed_position)
    from (
        select
            *,
            row_number() over (
                partition by {{ id }} order by landed_commit, landed_file, landed_position
            ) as arrival
        from {{ in_order_of_commits(landed, table, 'unconsumed') }}
    )
    where arrival = 1
{%- endmacro %}
