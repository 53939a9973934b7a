{% macro edited_documents() -%}
    {#- The documents that operators have edited, by resubmission_id, up to what this run has frozen:
        of one id the first landed rules. -#}
    select
        resubmission_id,
        min_by(document, struct(_file, _pos)) as document
    from {{ landed_before('resubmissions', until='landed') }}
    group by resubmission_id
{%- endmacro %}
