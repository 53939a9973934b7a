{% macro document_key(delivery, api) -%}
    {#- What identifies a document to a trigger, and the field that holds it: the first field that
        is not empty, unchanged; null if all are empty. -#}
    case
        when {{ delivery }}.uuid != ''
            then struct({{ delivery }}.uuid as document_key, 'UUID' as key_source)
        when {{ api }} is distinct from 'JMS' and {{ delivery }}.track_id != ''
            then struct({{ delivery }}.track_id as document_key, 'TRACK_ID' as key_source)
        when {{ delivery }}.event_id != ''
            then struct({{ delivery }}.event_id as document_key, 'EVENT_ID' as key_source)
    end
{%- endmacro %}

{% macro longest_key() %}{{ return(96) }}{% endmacro %}

{% macro key_state(key) -%}
    {#- Whether a document can be looked up by its key. -#}
    case
        when {{ key }} is null then 'MISSING'
        when char_length({{ key }}) > {{ longest_key() }} then 'TOO_LONG'
        else 'USABLE'
    end
{%- endmacro %}

{% macro key_hash(trigger_id, document_key, part=1) -%}
    {#- The first (part 1) or second (part 2) 64 bits of SHA-256 over trigger id and key, signed.
        The id has a fixed length, so that no two pairs make the same text. -#}
    cast(
        conv(
            substring(
                sha2(concat({{ trigger_id }}, {{ document_key }}), 256), {{ part * 16 - 15 }}, 16
            ),
            16,
            -10
        ) as bigint
    )
{%- endmacro %}

{% macro key_by_expression(expressions) -%}
    {#- What the key expression of the row's trigger gives; null if the trigger has none.

        expressions: rows of the seed with trigger_name and key, SQL of the user. -#}
    {%- if expressions -%}
        case trigger_name
            {%- for expression in expressions %}
            when {{ sql_text(expression.trigger_name) }} then cast((
                {{ adapter.exactly_once.filter_sql(expression.key) }}
            ) as string)
            {%- endfor %}
        end
    {%- else -%}
        cast(null as string)
    {%- endif -%}
{%- endmacro %}
