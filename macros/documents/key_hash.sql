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
