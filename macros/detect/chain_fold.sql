{% macro chain_fold(deliveries, known) -%}
    {#- Decides the deliveries of one key in order, since a decision depends on those before it.

        deliveries: array of the structs of chained_deliveries, in chain order; known: struct with
        completed_until, processing_until and waits_until of the key in history.

        Returns a struct. `points`: the deliveries that became NEW, each with the entry that it
        added to history; its times are null if copies wait for its service. The state of any other
        delivery follows from the points before it. `stopped_at`: the position of the first delivery
        that cannot be decided; all deliveries after it wait. `unanswered_at`: the position of the
        first delivery whose resolver must still be asked. The fold continues after it, since most
        answers do not change later deliveries, and the resolver is asked about several at once.

        SQL has no let: a transform over an array of one element binds the status of a step. -#}
    {%- set completed = 'if(d.is_resubmission_again, null, acc.completed_until)' -%}
    {%- set waits = waits_for_document(
        completed, 'acc.waits_until', 'd.received_at', 'd.is_unavailable'
    ) -%}
    {%- set state = history_state(
        completed, 'acc.processing_until', 'd.received_at', 'd.is_unavailable', 'd.removed_until',
        'd.had_waited_for_document'
    ) -%}
    {%- set known_inputs = {
        'eligible': 'true', 'detect_duplicates': 'true', 'use_history': 'true',
        'key_state': 'USABLE',
    } -%}
    aggregate(
        transform({{ deliveries }}, (d, i) -> struct(i as chain_position, d)),
        named_struct(
            'completed_until', {{ known }}.completed_until,
            'processing_until', {{ known }}.processing_until,
            'waits_until', {{ known }}.waits_until,
            'stopped_at', cast(null as int),
            'unanswered_at', cast(null as int),
            'points', cast(
                array() as array<struct<
                    chain_position: int, started_at: timestamp, live_until: timestamp,
                    delivery_id: string
                >>
            )
        ),
        (acc, step) -> if(
            acc.stopped_at is not null,
            acc,
            transform(
                transform(
                    array(step.d),
                    d -> case
                        when d.origin = 'RESUBMISSION' then 'NEW'
                        when d.is_beyond_recovery then 'IN_DOUBT'
                        when {{ waits }} then 'WAITS'
                        else transform(
                            array({{ state }}),
                            state -> ({{ decision_rule(
                                {
                                    'has_resolver': 'd.has_resolver',
                                    'history_state': 'state',
                                    'resolver_result': 'd.resolver_result',
                                    'suspends_on_error': suspends_here('d', 'state'),
                                },
                                known_inputs,
                            ) }}).status
                        )[0]
                    end
                ),
                status -> case
                    when
                        status in ('WAITS', 'SUSPENDED')
                        or (status is null and step.d.resolver_result <=> 'NOT_ASKED')
                        then named_struct(
                            'completed_until', acc.completed_until,
                            'processing_until', acc.processing_until,
                            'waits_until', acc.waits_until,
                            'stopped_at', step.chain_position,
                            'unanswered_at', acc.unanswered_at,
                            'points', acc.points
                        )
                    when status is null
                        then named_struct(
                            'completed_until', acc.completed_until,
                            'processing_until', acc.processing_until,
                            'waits_until', acc.waits_until,
                            'stopped_at', acc.stopped_at,
                            'unanswered_at', coalesce(acc.unanswered_at, step.chain_position),
                            'points', acc.points
                        )
                    when status = 'NEW' and step.d.has_condition
                        then named_struct(
                            'completed_until', greatest(acc.completed_until, step.d.live_until),
                            'processing_until', greatest(acc.processing_until, step.d.live_until),
                            'waits_until', if(
                                step.d.live_until is null, {{ forever() }}, acc.waits_until
                            ),
                            'stopped_at', acc.stopped_at,
                            'unanswered_at', acc.unanswered_at,
                            'points', concat(
                                acc.points,
                                array(
                                    named_struct(
                                        'chain_position', step.chain_position,
                                        'started_at', step.d.started_at,
                                        'live_until', step.d.live_until,
                                        'delivery_id', step.d.delivery_id
                                    )
                                )
                            )
                        )
                    else acc
                end
            )[0]
        ),
        acc -> named_struct(
            'stopped_at', acc.stopped_at,
            'unanswered_at', acc.unanswered_at,
            'points', acc.points
        )
    )
{%- endmacro %}
