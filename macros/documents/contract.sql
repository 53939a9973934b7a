{#- `exactly-once land` renders this file too, so it uses nothing of dbt but what land gives it. -#}

{% macro contract_breach(transport_known) -%}
    {#- Why a delivery with well-typed columns breaks the contract, as a reason code; null if it
        does not. `transport_known` is a condition that is true for a known transport. -#}
    case
        when delivery_id is null or delivery_id = '' then 'MISSING_DELIVERY_ID'
        when delivery_id like '%/recovery-%' or delivery_id like '%/resubmission-%'
            then 'RESERVED_ID'
        when received_at is null then 'MISSING_RECEIVED_AT'
        -- other writers can append years that no tool shows or reads
        when year(received_at) not between 1 and 9999 then 'IMPOSSIBLE_RECEIVED_AT'
        when not coalesce({{ transport_known }}, false) then 'UNKNOWN_TRANSPORT'
        when guaranteed is null then 'MISSING_GUARANTEED'
    end
{%- endmacro %}

{% macro delivery_as_json() -%}
    {#- A landed delivery as one text, to store a rejected row and to recognize it later. -#}
    to_json(
        struct(
            delivery_id, received_at, landed_at, transport, document_type, destination, guaranteed,
            uuid, track_id, event_id, redelivery_count, errors_to, document
        )
    )
{%- endmacro %}

{% macro delivery_content(columns=none) -%}
    {#- A hash of a landed row's content: all columns of its contract but landed_at, which landing
        sets. `columns` (name, data_type): those of the source table, by default of deliveries. -#}
    {%- if columns is none -%}
        {%- set columns = graph.sources['source.exactly_once.landing.deliveries'].columns.values()
            if execute else [] -%}
    {%- endif -%}
    {#- JSON shows which column is null; a time goes in as a number, since its text has no
        microseconds -#}
    sha2(to_json(named_struct(
        {%- for column in columns if column.name != 'landed_at' %}
        '{{ column.name }}', {% if column.data_type == 'timestamp' -%}
            unix_micros({{ column.name }})
        {%- else -%}
            {{ column.name }}
        {%- endif -%}
        {{ ',' if not loop.last }}
        {%- endfor %}
    )), 256)
{%- endmacro %}
