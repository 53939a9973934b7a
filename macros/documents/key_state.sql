{% macro key_state(key) -%}
    {#- Whether a document can be looked up by its key. -#}
    case
        when {{ key }} is null then 'MISSING'
        when char_length({{ key }}) > 96 then 'TOO_LONG'
        else 'USABLE'
    end
{%- endmacro %}
