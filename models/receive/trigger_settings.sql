{#- The hook looks at the seeds in every run: one that is wrong or half loaded stops the run here,
    before anything is decided. -#}
{{ config(pre_hook="{{ check_seeds() }}") }}
-- depends_on: {{ ref('transports') }}
-- depends_on: {{ ref('decision_rules') }}
-- depends_on: {{ ref('status_transitions') }}

with

triggers as (

    select
        {% for setting, (type, default) in trigger_defaults().items() -%}
            {{ seed_value(setting, type, setting) }} as {{ setting }},
        {% endfor -%}
        {{ seed_value('trigger_name', 'string', 'trigger_name') }} as trigger_name
    from {{ ref('triggers') }}

),

subscribed as (

    select
        trigger_name,
        sort_array(collect_set(document_type)) as document_types
    from {{ typed_seed('trigger_conditions') }}
    group by trigger_name

),

known_triggers as (

    select
        trigger_name,
        resumed_at,
        settings
    from {{ last_published('trigger_states') }}

),

with_defaults as (

    select
        coalesce(triggers.trigger_name, known_triggers.trigger_name) as trigger_name,
        triggers.trigger_name is not null as is_in_seed,
        {% for setting, (type, default) in trigger_defaults().items() -%}
            {#- a trigger that has left the seed keeps its settings for its open documents -#}
            {%- set value -%}
                if(
                    triggers.trigger_name is null,
                    cast(try_element_at(known_triggers.settings, '{{ setting }}') as {{ type }}),
                    triggers.{{ setting }}
                )
            {%- endset -%}
            {% if default is none -%}
                {{ value }} as {{ setting }},
            {% else -%}
                coalesce({{ value }}, cast('{{ default }}' as {{ type }})) as {{ setting }},
            {% endif -%}
        {%- endfor %}
        coalesce(subscribed.document_types, array()) as document_types,
        known_triggers.resumed_at
    from triggers
    full outer join known_triggers on triggers.trigger_name = known_triggers.trigger_name
    left join subscribed on triggers.trigger_name = subscribed.trigger_name

),

final as (

    select
        *,
        base64(unhex(sha1(trigger_name))) as trigger_id,
        suspend_on_preprocessing_error or on_retry_failure = 'suspend' as suspends_on_error
    from with_defaults

)

select * from final
