{% macro chain_fold(deliveries, known, unanswered='STOP') -%}
    {#- Decides the deliveries of one key one after the other, as far as one depends on another.

        deliveries: array of structs in chain order with the fields of `in_chains`;
        known: struct with completed_until, processing_until and waits_until of the key in history;
        unanswered: what a delivery means for those behind it whose resolver was not asked yet.
        Returns a struct: `points`, the deliveries that became NEW and what they added to history
        (the state of any other delivery follows from the points before it), and `stopped_at`, the
        place of the first delivery that could not be decided, null where all could.

        The outcome of a step is bound by a transform over an array of one, since SQL has no let. -#}
    {%- set state -%}
        {{ history_state(
            'acc.completed_until', 'acc.waits_until', 'acc.processing_until', 'd.received_at',
            'd.is_unavailable', 'd.removed_until'
        ) }}
    {%- endset -%}
    aggregate(
        {{ deliveries }},
        named_struct(
            'completed_until', {{ known }}.completed_until,
            'processing_until', {{ known }}.processing_until,
            'waits_until', {{ known }}.waits_until,
            'stopped_at', cast(null as int),
            'points', cast(
                array() as array<struct<
                    place: int, started_at: timestamp, live_until: timestamp,
                    completed_until: timestamp, processing_until: timestamp,
                    waits_until: timestamp, delivery_id: string
                >>
            )
        ),
        (acc, d) -> if(
            acc.stopped_at is not null,
            acc,
            transform(
                array(
                    case
                        when d.origin = 'RESUBMISSION' then 'NEW'
                        when d.is_beyond_recovery then 'OTHER'
                        else {{ chain_outcome('d', state, unanswered) }}
                    end
                ),
                outcome -> case
                    when outcome = 'STOP' then
                        named_struct(
                            'completed_until', acc.completed_until,
                            'processing_until', acc.processing_until,
                            'waits_until', acc.waits_until,
                            'stopped_at', d.place,
                            'points', acc.points
                        )
                    when outcome = 'NEW' and d.has_condition then
                        named_struct(
                            'completed_until', greatest(acc.completed_until, d.completed_until),
                            'processing_until', greatest(acc.processing_until, d.processing_until),
                            'waits_until', greatest(acc.waits_until, d.waits_until),
                            'stopped_at', acc.stopped_at,
                            'points', concat(
                                acc.points,
                                array(
                                    named_struct(
                                        'place', d.place,
                                        'started_at', d.started_at,
                                        'live_until', d.processing_until,
                                        'completed_until', d.completed_until,
                                        'processing_until', d.processing_until,
                                        'waits_until', d.waits_until,
                                        'delivery_id', d.delivery_id
                                    )
                                )
                            )
                        )
                    else acc
                end
            )[0]
        ),
        acc -> named_struct('stopped_at', acc.stopped_at, 'points', acc.points)
    )
{%- endmacro %}
