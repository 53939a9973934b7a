{% macro chain_outcome(d, state, unanswered) -%}
    {#- What a delivery of a chain means for those behind it: NEW adds to history, STOP ends the
        chain (it waits, its trigger suspends, or a resolver must answer first), OTHER changes
        nothing. `state` is bound by a transform over an array of one. -#}
    transform(
        array({{ state }}),
        state -> if(
            state = 'WAITS',
            'STOP',
            case coalesce(
                {{ history_rule(
                    d ~ '.has_resolver', 'state', d ~ '.resolver_result',
                    '(' ~ d ~ ".suspends_on_error and (state != 'UNAVAILABLE' or " ~ d ~ '.is_unavailable))'
                ) }},
                {{ d }}.resolver_result,
                'UNANSWERED'
            )
                when 'R07' then 'NEW'
                when 'R11a' then 'NEW'
                when 'R16a' then 'NEW'
                when 'R11d' then 'STOP'
                when 'R14' then 'STOP'
                when 'NOT_ASKED' then 'STOP'
                when 'UNANSWERED' then '{{ unanswered }}'
                else 'OTHER'
            end
        )
    )[0]
{%- endmacro %}
