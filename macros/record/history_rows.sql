{% macro history_rows(begins, ends) -%}
    {#- The rows of history_ledger for a document whose entries expire at expires_at (`processing`)
        and completed_expires_at: one row for both if these are the same. begins, ends: SQL, whether
        it gets each entry. -#}
    filter(
        array(
            named_struct(
                'has_processing', {{ begins }},
                'has_completed', {{ ends }} and completed_expires_at <=> expires_at,
                'expires_at', expires_at
            ),
            named_struct(
                'has_processing', false,
                'has_completed', {{ ends }} and not completed_expires_at <=> expires_at,
                'expires_at', completed_expires_at
            )
        ),
        entry -> entry.has_processing or entry.has_completed
    )
{%- endmacro %}
