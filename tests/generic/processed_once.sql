{% test processed_once(model, key, processed_at=none, within=none) %}
    {#- Each key stands in a table once, or once within a time: for any table of effects, also of a
        project that uses nothing else of this one. Rows without a key are not compared.

        key: a column or an expression; processed_at: when a row was processed, a timestamp; within:
        how long after the one before a row of the same key is a copy, as in `2 hours`. -#}
    {%- if (processed_at is none) != (within is none) -%}
        {{ exceptions.raise_compiler_error(
            'processed_once of ' ~ model ~ ': processed_at and within go together'
        ) }}
    {%- endif -%}
    with

    in_order as (

        select
            {{ key }} as processed_key,
            {{ processed_at or 'cast(null as timestamp)' }} as processed_at,
            lag({{ processed_at or 'cast(null as timestamp)' }}) over one_key as processed_before,
            row_number() over one_key as number
        from {{ model }}
        where {{ key }} is not null
        window one_key as (partition by {{ key }} order by {{ processed_at or key }})

    )

    select *
    from in_order
    where
        number > 1
        {% if within %}and processed_at < processed_before + interval {{ within }}{% endif %}
{% endtest %}
