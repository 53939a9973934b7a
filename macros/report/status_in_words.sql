{% macro status_in_words(status) -%}
    case {{ status }}
        when 'NEW' then 'to be processed: the trigger has not processed it'
        when 'DUPLICATE' then 'discarded: the trigger has processed this document before'
        when 'IN_DOUBT'
            then 'not processed: nobody can tell whether this document was processed before'
        when 'NOT_CHECKED' then 'to be processed: duplicates of it are not looked for'
    end
{%- endmacro %}
