-- depends_on: {{ ref('published_runs') }}
{%- set time_to_live = duration_in_words('history_time_to_live_ms') -%}
{#- columns of decision_rules.csv, and the SQL for the present setting of a trigger -#}
{%- set now = {
    'detect_duplicates': 'detect_duplicates',
    'use_history': 'use_history',
    'has_resolver': '(resolver is not null)',
} %}
with

facts as (

    select * from {{ ref('explained_decisions') }}

),

in_words as (

    select
        *,
        coalesce(concat(status, ', ', status_in_words), 'WAITING, not decided yet') as outcome,
        concat_ws(
            '; ',
            case
                when status is null
                    then concat(
                        'it waits since ', {{ time_in_words('waiting_since') }}, ': ',
                        reason_in_words
                    )
                when status = 'DUPLICATE' then 'discarded and acknowledged'
                when status = 'IN_DOUBT' and returned is null and not is_resubmitted
                    then concat(
                        'acknowledged and not processed. If it should be: ',
                        {{ operation_command('resubmit', {
                            'delivery_id': 'delivery_id', 'trigger_name': 'trigger_name'
                        }) | indent(24) }}
                    )
                when status = 'IN_DOUBT' then 'acknowledged and not processed'
                when condition_name is null
                    then 'acknowledged and discarded, since no condition takes it'
                when service is null
                    then 'completed by being decided: there is nothing to run, new_documents has it'
                when state_in_words is not null then state_in_words
                when reported is null then 'handed over to its service'
            end,
            reported,
            noted,
            returned,
            if(
                remembered_until is null,
                null,
                concat('history knows it until ', {{ time_in_words('remembered_until') }})
            )
        ) as afterwards,
        concat_ws(
            '; ',
            if(
                case rule_id
                    {% for rule in decision_rules() -%}
                        {%- set others = [] -%}
                        {%- for setting, value in now.items()
                            if rule[setting] in ['true', 'false'] -%}
                            {%- do others.append(value ~ ' != ' ~ rule[setting]) -%}
                        {%- endfor -%}
                        {%- if others -%}
                            when '{{ rule.rule_id }}' then {{ others | join(' or ') }}
                        {% endif -%}
                    {%- endfor -%}
                    else false
                end,
                'the trigger has other settings by now, see seeds/triggers.csv',
                null
            ),
            case rule_id
                {% for rule in decision_rules() -%}
                    when '{{ rule.rule_id }}' then concat({{ sql_text(rule.advice)
                        | replace('{time_to_live}', "', " ~ time_to_live ~ ", '") }})
                {% endfor -%}
                when 'OPERATOR' then 'none: an operator has decided'
                when 'MAX_RECOVERIES'
                    then concat(
                        'a longer execution_timeout_ms, if the service was at work all the time; ',
                        'the variable max_recoveries'
                    )
                else 'see what it waits for'
            end
        ) as other_settings
    from facts

),

final as (

    select
        -- ids
        delivery_id,
        trigger_name,
        landed_delivery_id,
        document_type,
        document_key,

        -- the story
        status,
        rule_id,
        what_came,
        how_routed,
        key_from,
        count_says,
        history_says,
        resolver_says,
        decision,
        afterwards,
        other_settings,
        concat_ws(
            '\n',
            concat('delivery ', delivery_id, ' in trigger ', trigger_name, ': ', outcome),
            concat('  came        ', what_came),
            concat('  routed      ', how_routed),
            concat('  key         ', key_from),
            concat('  count       ', count_says),
            concat('  history     ', history_says),
            concat('  resolver    ', resolver_says),
            concat('  decision    ', decision),
            concat('  afterwards  ', afterwards),
            concat('  a setting that would have changed it: ', other_settings)
        ) as explanation,

        -- times
        received_at,
        landed_received_at,
        decided_at
    from in_words

)

select * from final
