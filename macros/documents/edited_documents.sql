{% macro edited_documents(until='landed') -%}
    {#- The documents that operators have edited, by resubmission_id: of one id the first landed
        rules. until: see landed_before. -#}
    {%- set requests = landed_before('resubmissions', until=until) -%}
    select
        resubmission_id,
        min_by(document, struct(landed_commit, landed_file, landed_position)) as document
    from {{ in_order_of_commits(requests, 'resubmissions', until) }}
    group by resubmission_id
{%- endmacro %}
