{% macro suspends_here(delivery, history_state) -%}
    {#- Whether an error in deciding a delivery suspends its trigger. It does not where entries have
        been removed, since waiting would not bring them back. An unavailable history comes back. -#}
    (
        {{ delivery }}.suspends_on_error
        and ({{ history_state }} != 'UNAVAILABLE' or {{ delivery }}.is_unavailable)
    )
{%- endmacro %}
