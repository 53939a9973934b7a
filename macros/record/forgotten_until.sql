{% macro forgotten_until() -%}
    {#- The number of the run up to which retention has forgotten rows; 0 where it never has. What
        audits miss of these runs is no contradiction. -#}
    (
        select coalesce(max(retentions.run_number), 0)
        from {{ ref('published_runs') }} as retentions
        where retentions.kind = 'retention'
    )
{%- endmacro %}
