{% macro key_in_words(f) -%}
    {#- The key and where it came from. -#}
    case
        when {{ f }}.key_source is null and {{ f }}.key is not null
            then concat(
                'what the expression ', {{ f }}.key, ' of its trigger gives',
                if({{ f }}.status is null, ' when it is decided', ': nothing')
            )
        when {{ f }}.key_state = 'MISSING'
            then if(
                {{ f }}.transport_api = 'JMS',
                'none: uuid and event_id are empty',
                'none: uuid, track_id and event_id are empty'
            )
        else concat(
            left({{ f }}.document_key, if({{ f }}.key_state = 'TOO_LONG', 40, 96)),
            if({{ f }}.key_state = 'TOO_LONG', '...', ''),
            ', from ',
            lower({{ f }}.key_source),
            if(
                {{ f }}.key_state = 'TOO_LONG',
                concat(
                    '; ', char_length({{ f }}.document_key),
                    ' characters are too long to be looked up, 96 would do'
                ),
                ''
            )
        )
    end
{%- endmacro %}
