{% macro contract_breach(transport_known) -%}
    {#- Why a delivery with well-typed columns breaks the contract, as a reason code; null where it
        keeps it. `transport_known` is a condition that is true for a known transport.
        `exactly-once land` renders this file too, so it uses nothing of dbt. -#}
    case
        when delivery_id is null or delivery_id = '' then 'MISSING_DELIVERY_ID'
        when delivery_id like '%/recovery-%' or delivery_id like '%/resubmission-%'
            then 'RESERVED_ID'
        when received_at is null then 'MISSING_RECEIVED_AT'
        -- other writers can append what no tool shows or reads
        when year(received_at) not between 1 and 9999 then 'IMPOSSIBLE_RECEIVED_AT'
        when not coalesce({{ transport_known }}, false) then 'UNKNOWN_TRANSPORT'
        when guaranteed is null then 'MISSING_GUARANTEED'
    end
{%- endmacro %}
