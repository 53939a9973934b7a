{% macro origin_in_words(f) -%}
    {#- What came. -#}
    concat_ws(
        ', ',
        case
            when {{ f }}.delivery_id like '%/recovery-%'
                then concat(
                    'recovery ', {{ f }}.recoveries, ' of delivery ', {{ f }}.landed_delivery_id,
                    ', since its service was interrupted'
                )
            when {{ f }}.delivery_id like '%/resubmission-%'
                then concat(
                    'delivery ', {{ f }}.landed_delivery_id,
                    ' again, since an operator resubmitted it'
                )
        end,
        concat(
            coalesce({{ f }}.document_type, 'a document without a type'),
            coalesce(concat(' by ', {{ f }}.transport), '')
        ),
        if({{ f }}.guaranteed, 'guaranteed', 'not guaranteed'),
        concat('received ', {{ time_in_words(f ~ '.received_at') }}),
        concat('landed ', {{ time_in_words(f ~ '.landed_at') }})
    )
{%- endmacro %}
