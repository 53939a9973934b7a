{% macro answer_rule(rule, answer, suspends_on_error) -%}
    {#- The rule of a family (R06, R11, R13) that a resolver's answer selects; null while the
        resolver has not answered. -#}
    case {{ answer }}
        when 'NEW' then '{{ rule }}a'
        when 'DUPLICATE' then '{{ rule }}b'
        when 'IN_DOUBT' then '{{ rule }}c'
        when 'TRANSIENT_ERROR' then if({{ suspends_on_error }}, '{{ rule }}d', '{{ rule }}e')
        when 'ERROR' then '{{ rule }}f'
        when 'INVALID' then '{{ rule }}g'
    end
{%- endmacro %}
