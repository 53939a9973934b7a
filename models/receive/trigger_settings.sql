{#- The view is made anew in every run; a seed that is wrong or half loaded stops the run here,
    before anything is decided. -#}
{{ config(pre_hook="{{ check_seeds() }}") }}
-- depends_on: {{ ref('trigger_conditions') }}
-- depends_on: {{ ref('transports') }}
-- depends_on: {{ ref('decision_rules') }}
-- depends_on: {{ ref('status_transitions') }}

with

triggers as (

    select * from {{ ref('triggers') }}

),

known_triggers as (

    select trigger_name from {{ last_published('trigger_states') }}

),

removed_from_seed as (

    select known_triggers.trigger_name
    from known_triggers
    left anti join triggers on known_triggers.trigger_name = triggers.trigger_name

),

final as (

    select
        coalesce(triggers.trigger_name, removed_from_seed.trigger_name) as trigger_name,
        base64(
            unhex(sha1(coalesce(triggers.trigger_name, removed_from_seed.trigger_name)))
        ) as trigger_id,
        triggers.trigger_name is not null as is_in_seed,
        {% for setting, (type, default) in trigger_defaults().items() -%}
            {%- set text = "nullif(trim(triggers." ~ setting ~ "), '')" -%}
            {%- set written = "try_cast(" ~ text ~ " as " ~ type ~ ")" -%}
            {% if setting in ['resolver', 'resource_monitor'] -%}
                nullif({{ written }}, 'none') as {{ setting }},
            {% elif default is none -%}
                {{ written }} as {{ setting }},
            {% else -%}
                coalesce({{ written }}, cast('{{ default }}' as {{ type }})) as {{ setting }},
            {% endif -%}
        {%- endfor %}
        coalesce(triggers.suspend_on_preprocessing_error = 'true', false)
        or coalesce(triggers.on_retry_failure = 'suspend', false) as suspends_on_error
    from triggers
    full outer join removed_from_seed
        on triggers.trigger_name = removed_from_seed.trigger_name

)

select * from final
