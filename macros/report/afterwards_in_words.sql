{% macro afterwards_in_words(f) -%}
    {#- What happened to the delivery after it was decided. -#}
    concat_ws(
        '; ',
        case
            when {{ f }}.status is null then concat(
                'it waits since ', {{ time_in_words(f ~ '.waiting_since') }}, ': ',
                {{ f }}.reason_in_words
            )
            when {{ f }}.status = 'DUPLICATE' then 'discarded and acknowledged'
            when {{ f }}.status = 'IN_DOUBT' and {{ f }}.returned is null then concat(
                'acknowledged and not processed. If it should be: dbt run-operation resubmit ',
                "--args '{delivery_id: ", {{ f }}.delivery_id,
                ', trigger_name: ', {{ f }}.trigger_name, "}'"
            )
            when {{ f }}.status = 'IN_DOUBT' then 'acknowledged and not processed'
            when {{ f }}.condition_name is null
                then 'acknowledged and discarded, since no condition takes it'
            when {{ f }}.service is null
                then 'completed by being decided: there is nothing to run, new_documents has it'
            when {{ f }}.state_in_words is not null then {{ f }}.state_in_words
            when {{ f }}.told is null then 'handed over to its service'
        end,
        {{ f }}.told,
        {{ f }}.noted,
        {{ f }}.returned,
        if(
            {{ f }}.remembered_until is null,
            null,
            concat('history knows it until ', {{ time_in_words(f ~ '.remembered_until') }})
        )
    )
{%- endmacro %}
