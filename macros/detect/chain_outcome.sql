{% macro chain_outcome(d, state) -%}
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
                'UNANSWERED'
            )
                when 'R07' then 'NEW'
                when 'R11a' then 'NEW'
                when 'R16a' then 'NEW'
                when 'R11d' then 'STOP'
                when 'R14' then 'STOP'
                when 'UNANSWERED' then 'STOP'
                else 'OTHER'
            end
        )
    )[0]
{%- endmacro %}
