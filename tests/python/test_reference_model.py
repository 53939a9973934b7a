"""Small cases that pin the reference model to the decision rules, and invariants over feeds."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from feeds import Scenario, random_scenario, scenarios
from hypothesis import HealthCheck, given, settings
from reference_model import (
    Command,
    Condition,
    Delivery,
    Execution,
    Resubmission,
    RuleInput,
    RunResult,
    Simulator,
    TransientError,
    Transport,
    Trigger,
    choose_rule,
    document_key_of,
)

RULE_TABLE = Path(__file__).parents[2] / "seeds" / "decision_rules.csv"
Resolver = Callable[[Delivery], Any]
NOON = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)
TRANSPORTS = [
    Transport("BROKER", "MSG", True, 0),
    Transport("UM_SERIAL", "MSG", False, None),
    Transport("JMS", "JMS", True, 1),
]
WITH_HISTORY = Trigger("t", detect_duplicates=True, use_history=True)
CONCURRENT = replace(WITH_HISTORY, processing_mode="concurrent")
BY_COUNT = Trigger("t", detect_duplicates=True)
WITH_SERVICE = Condition("t", 1, "all", "order", service="service")
WITHOUT_SERVICE = Condition("t", 1, "all", "order")


def at(minutes: float) -> datetime:
    """That many minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def order(delivery_id: str, minutes: float = 0, uuid: str | None = "k", **columns: Any) -> Delivery:
    columns = {"redelivery_count": 0, **columns}
    return Delivery(delivery_id, at(minutes), document_type="order", uuid=uuid, **columns)


def said(event: str, delivery_id: str, minutes: float, attempt: int = 1) -> Execution:
    when = at(minutes)
    name = f"{delivery_id} {event} {minutes}"
    return Execution(name, delivery_id, "t", "service", attempt, event, when, recorded_at=when)


def command(word: str, minutes: float) -> Command:
    return Command(f"{word} {minutes}", "t", word, at(minutes))


def resubmit(delivery_id: str, minutes: float, name: str = "r1", **columns: Any) -> Resubmission:
    return Resubmission(name, delivery_id, "t", at(minutes), **columns)


def simulator(
    trigger: Trigger = WITH_HISTORY,
    condition: Condition = WITH_SERVICE,
    answer: Resolver | None = None,
    **variables: int,
) -> Simulator:
    resolvers = {trigger.resolver: answer} if trigger.resolver else {}
    return Simulator([trigger], [condition], TRANSPORTS, resolvers=resolvers, **variables)


def decided(result: RunResult) -> dict[str, str]:
    return {d.delivery_id: f"{d.status} {d.rule_id}" for d in result.decisions}


def waits(result: RunResult) -> dict[str, tuple[str, str | None]]:
    return {w.delivery_id: (w.reason, w.blocked_by_delivery_id) for w in result.waiting}


# Receiving and routing --------------------------------------------------------------------------


def test_bad_rows_are_rejected_with_a_reason() -> None:
    good = order("d1")
    rows = [
        order(""),
        replace(good, received_at=None),
        replace(good, transport="PIGEON"),
        replace(good, guaranteed=None),
        order("d1/recovery-1"),
        good,
        replace(good, landed_at=at(1)),
        replace(good, document="other"),
    ]
    result = simulator().run(at(1), rows)
    assert [reason for _, reason in result.rejected] == [
        "MISSING_DELIVERY_ID",
        "MISSING_RECEIVED_AT",
        "UNKNOWN_TRANSPORT",
        "MISSING_GUARANTEED",
        "RESERVED_DELIVERY_ID",
        "REPEATED",
        "CONFLICTING",
    ]
    assert decided(result) == {"d1": "NEW R07"}


def test_a_delivery_goes_to_subscribers_of_its_api_or_to_its_destination() -> None:
    triggers = [Trigger("msg"), Trigger("jms", api="JMS"), Trigger("other")]
    conditions = [Condition("msg", 1, "c", "order"), Condition("jms", 1, "c", "order")]
    result = Simulator(triggers, conditions, TRANSPORTS).run(
        at(1),
        [
            order("broker"),
            order("jms", transport="JMS"),
            order("sent", destination="other"),
            order("across", transport="JMS", destination="msg"),
            order("lost", destination="nowhere"),
            replace(order("unwanted"), document_type="letter"),
        ],
    )
    assert {(d.delivery_id, d.trigger_name) for d in result.decisions} == {
        ("broker", "msg"),
        ("jms", "jms"),
        ("sent", "other"),
        ("across", "msg"),
    }
    assert result.decision("sent").condition_name is None
    assert result.unrouted == ["lost", "unwanted"]


def test_queue_capacity_counts_only_what_no_run_has_examined() -> None:
    model = simulator(replace(WITH_HISTORY, queue_capacity=1))
    first = model.run(at(5), [order("a", 1), order("b", 2), order("c", 3, uuid="other")])
    assert decided(first) == {"a": "NEW R07"}
    assert waits(first) == {"b": ("QUEUE_CAPACITY", None), "c": ("QUEUE_CAPACITY", None)}
    second = model.run(at(6))
    assert waits(second)["b"] == ("UNFINISHED_DOCUMENT", "a")
    third = model.run(at(7))
    assert decided(third) == {"c": "NEW R07"}


def test_the_first_condition_whose_filter_is_true_gives_the_service() -> None:
    conditions = [
        Condition("t", 2, "any", "order", service="second"),
        Condition("t", 1, "none", "order", lambda delivery: False, "false", "first"),
    ]
    decision = (
        Simulator([WITH_HISTORY], conditions, TRANSPORTS).run(at(1), [order("a")]).decision("a")
    )
    assert (decision.condition_name, decision.service) == ("any", "second")


def test_an_unmatched_new_document_leaves_no_history() -> None:
    never = replace(WITH_SERVICE, filter=lambda delivery: False)
    result = simulator(condition=never).run(at(1), [order("a"), order("b")])
    assert decided(result) == {"a": "NEW R07", "b": "NEW R07"}


def test_disabled_and_removed_triggers_keep_their_deliveries_waiting() -> None:
    model = simulator(replace(WITH_HISTORY, enabled=False))
    assert waits(model.run(at(1), [order("a")])) == {"a": ("DISABLED", None)}
    assert waits(model.run(at(2), triggers=[])) == {"a": ("DISABLED", None)}
    assert decided(model.run(at(3), triggers=[WITH_HISTORY])) == {"a": "NEW R07"}


def test_a_trigger_added_later_takes_earlier_deliveries_only_with_start_from() -> None:
    model = Simulator([], [WITH_SERVICE, replace(WITH_SERVICE, trigger_name="u")], TRANSPORTS)
    assert model.run(at(5), [order("a", 1), order("b", 2)]).unrouted == ["a", "b"]
    added = [Trigger("t"), Trigger("u", start_from=at(2))]
    result = model.run(at(6), triggers=added)
    assert [(d.delivery_id, d.trigger_name) for d in result.decisions] == [("b", "u")]
    assert model.run(at(7), [order("late", 1)]).decision("late").trigger_name == "t"


# Facts of a delivery ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "ids", "expected"),
    [
        ("MSG", ("u", "t", "e"), ("UUID", "u", "USABLE")),
        ("MSG", ("", "t", "e"), ("TRACK_ID", "t", "USABLE")),
        ("JMS", ("", "t", "e"), ("EVENT_ID", "e", "USABLE")),
        ("MSG", (" ", "t", "e"), ("UUID", " ", "USABLE")),
        ("MSG", ("😀" * 96, None, None), ("UUID", "😀" * 96, "USABLE")),
        ("MSG", ("😀" * 97, "t", None), ("UUID", "😀" * 97, "TOO_LONG")),
        ("JMS", (None, "t", ""), (None, None, "MISSING")),
    ],
)
def test_the_key_is_the_first_id_that_is_not_empty(
    api: str, ids: tuple[str | None, ...], expected: tuple[str | None, ...]
) -> None:
    uuid, track_id, event_id = ids
    delivery = Delivery("d", NOON, uuid=uuid, track_id=track_id, event_id=event_id)
    assert document_key_of(delivery, api) == expected


@pytest.mark.parametrize(
    ("transport", "count", "expected"),
    [
        ("BROKER", None, "UNDEFINED"),
        ("BROKER", -1, "UNDEFINED"),
        ("BROKER", 0, "FIRST"),
        ("BROKER", 1, "REDELIVERED"),
        ("UM_SERIAL", 5, "UNDEFINED"),
        ("JMS", 0, "FIRST"),
        ("JMS", 1, "FIRST"),
        ("JMS", 2, "REDELIVERED"),
    ],
)
def test_the_count_is_read_as_its_transport_counts(
    transport: str, count: int | None, expected: str
) -> None:
    model = simulator(replace(BY_COUNT, api="JMS" if transport == "JMS" else "MSG"))
    result = model.run(at(1), [order("a", transport=transport, redelivery_count=count)])
    assert result.decision("a").redelivery == expected


def test_volatile_and_automatically_acknowledged_deliveries_are_not_checked() -> None:
    automatic = replace(WITH_HISTORY, api="JMS", acknowledgement_mode="AUTO_ACKNOWLEDGE")
    model = simulator(automatic)
    sent = {"destination": "t"}
    rows = [
        order("jms", transport="JMS"),
        order("msg", **sent),
        order("v", guaranteed=False, **sent),
    ]
    result = model.run(at(1), rows)
    assert decided(result) == {"jms": "NOT_CHECKED R01", "msg": "NEW R07", "v": "NOT_CHECKED R01"}
    assert result.decision("v").history_state == "NONE"


# History and chains -----------------------------------------------------------------------------


def test_without_a_service_a_copy_is_a_duplicate_until_the_time_to_live_ends() -> None:
    model = simulator(condition=WITHOUT_SERVICE)
    rows = [order("a"), order("b", 119), order("c", 120), order("d", 121)]
    result = model.run(at(130), rows)
    assert decided(result) == {
        "a": "NEW R07",
        "b": "DUPLICATE R09",
        "c": "NEW R07",
        "d": "DUPLICATE R09",
    }
    assert result.decision("d").matched_delivery_id == "c"


def test_the_clock_skew_tolerance_lengthens_an_entrys_life() -> None:
    model = simulator(condition=WITHOUT_SERVICE, clock_skew_tolerance_ms=1)
    assert decided(model.run(at(130), [order("a"), order("c", 120)]))["c"] == "DUPLICATE R09"


def test_a_late_copy_meets_an_entry_that_started_after_it() -> None:
    model = simulator(replace(WITH_HISTORY, history_time_to_live_ms=0), WITHOUT_SERVICE)
    model.run(at(10), [order("a", 5)])
    assert decided(model.run(at(11), [order("late", 1)])) == {"late": "DUPLICATE R09"}


def test_copies_wait_for_an_unfinished_document_and_behind_each_other() -> None:
    model = simulator()
    first = model.run(at(5), [order("c", 3), order("b", 2), order("a", 1)])
    assert decided(first) == {"a": "NEW R07"}
    assert waits(first) == {"b": ("UNFINISHED_DOCUMENT", "a"), "c": ("BEHIND", "b")}
    second = model.run(at(7), executions=[said("STARTED", "a", 6)])
    assert waits(second) == waits(first)
    third = model.run(at(9), executions=[said("SUCCESS", "a", 8)])
    assert decided(third) == {"b": "DUPLICATE R09", "c": "DUPLICATE R09"}


def test_a_concurrent_trigger_doubts_copies_of_a_document_that_has_begun() -> None:
    model = simulator(CONCURRENT)
    assert waits(model.run(at(5), [order("a"), order("b", 1)])) == {
        "b": ("UNFINISHED_DOCUMENT", "a")
    }
    assert decided(model.run(at(7), executions=[said("STARTED", "a", 6)])) == {"b": "IN_DOUBT R10"}


def test_a_worker_that_is_down_for_longer_than_the_time_to_live_opens_no_gap() -> None:
    model = simulator()
    model.run(at(1), [order("a", 0)])
    assert waits(model.run(at(151), [order("b", 150)])) == {"b": ("UNFINISHED_DOCUMENT", "a")}
    # received at 0 and landed with the run at 1: what happens at 181 happens at 180 for the feed
    ended = [said("STARTED", "a", 181), said("SUCCESS", "a", 186)]
    result = model.run(at(200), [order("c", 299), order("d", 300)], ended)
    assert decided(result) == {
        "b": "DUPLICATE R09",
        "c": "DUPLICATE R09",
        "d": "NEW R07",
    }
    times = {(e.processing_status, e.started_at, e.expires_at) for e in model.history["t", "k"]}
    assert times == {("processing", at(180), at(300)), ("completed", at(180), at(300))}


def test_a_copy_that_waited_is_no_new_document_whatever_the_workers_clock_says() -> None:
    model = simulator()
    model.run(at(1), [order("a", 0)])
    model.run(at(151), [order("b", 150)])
    # by the worker's clock it began before the document landed
    ended = [said("STARTED", "a", -500), said("SUCCESS", "a", -499)]
    assert decided(model.run(at(200), [order("c", 151)], ended)) == {
        "b": "DUPLICATE R08",
        "c": "NEW R07",
    }


def test_the_first_executions_that_are_known_begin_a_document() -> None:
    model = simulator()
    model.run(at(0), [order("a", 0)])
    model.run(at(20), executions=[said("STARTED", "a", 11), said("STARTED", "a", 10)])
    # an earlier begin that is heard of later does not move it
    model.run(at(30), executions=[said("STARTED", "a", 5)])
    assert [(e.started_at, e.expires_at) for e in model.history["t", "k"]] == [(at(10), at(130))]


def test_a_serial_trigger_asks_its_resolver_when_no_earlier_document_is_unfinished() -> None:
    asked = []

    def answer(delivery: Delivery) -> str:
        asked.append(delivery.delivery_id)
        return "DUPLICATE" if delivery.delivery_id == "b" else "NEW"

    model = simulator(replace(BY_COUNT, resolver="ask"), answer=answer)
    first = [
        order("a", 0),
        order("b", 1, redelivery_count=1),
        order("c", 2, uuid="other", redelivery_count=1),
        order("d", 3, uuid="other", redelivery_count=1),
        order("e", 4, uuid=None, redelivery_count=1),
    ]
    result = model.run(at(5), first)
    assert decided(result) == {"a": "NEW R03", "c": "NEW R06a"}
    assert waits(result) == {
        "b": ("UNFINISHED_DOCUMENT", "a"),
        "d": ("UNFINISHED_DOCUMENT", "c"),
        "e": ("UNFINISHED_DOCUMENT", "a"),
    }
    assert asked == ["c"]
    result = model.run(at(10), executions=[said("SUCCESS", "a", 6)])
    assert decided(result) == {"b": "DUPLICATE R06b"}
    assert waits(result)["e"] == ("UNFINISHED_DOCUMENT", "c")
    result = model.run(at(20), executions=[said("SUCCESS", "c", 11)])
    assert decided(result) == {"d": "NEW R06a"}
    assert waits(result) == {"e": ("UNFINISHED_DOCUMENT", "d")}
    result = model.run(at(30), executions=[said("SUCCESS", "d", 21)])
    assert decided(result) == {"e": "NEW R06a"}
    assert asked == ["c", "b", "d", "e"]


def test_a_concurrent_trigger_asks_at_once() -> None:
    trigger = replace(BY_COUNT, resolver="ask", processing_mode="concurrent")
    model = simulator(trigger, answer=lambda _: "DUPLICATE")
    result = model.run(at(5), [order("a", 0), order("b", 1, redelivery_count=1)])
    assert decided(result) == {"a": "NEW R03", "b": "DUPLICATE R06b"}


def test_a_document_that_failed_is_run_again_on_request() -> None:
    model = simulator()
    model.run(at(1), [order("a"), order("b", uuid="other")])
    ended = [said("ERROR", "a", 2), said("SUCCESS", "b", 2)]
    model.run(at(3), executions=ended)
    requests = [resubmit("a", 4), resubmit("b", 4, "r2")]
    result = model.run(at(5), resubmissions=requests)
    assert decided(result) == {"a/resubmission-1": "NEW OPERATOR"}
    assert result.refused == [("r2", "SUCCESS")]
    again = [resubmit("a", 6, "r3"), resubmit("a/resubmission-1", 6, "r4")]
    assert model.run(at(7), resubmissions=again).refused == [
        ("r3", "RESUBMITTED"),
        ("r4", "UNFINISHED"),
    ]
    model.run(at(8), executions=[said("ERROR", "a/resubmission-1", 8)])
    result = model.run(at(9), resubmissions=[resubmit("a", 9, "r5")])
    assert decided(result) == {"a/resubmission-2": "NEW OPERATOR"}
    model.run(at(10), executions=[said("SUCCESS", "a/resubmission-2", 10)])
    result = model.run(at(11), resubmissions=[resubmit("a/resubmission-1", 11, "r6")])
    assert result.refused == [("r6", "RESUBMITTED")]


def test_an_expression_gives_the_key_and_nothing_else_does() -> None:
    trigger = replace(WITH_HISTORY, key="%n%", key_function=lambda d: d.document)
    model = simulator(trigger, WITHOUT_SERVICE)
    rows = [
        order("a", 0, document="1"),
        order("b", 1, uuid="other", document="1"),
        order("c", 2, document=None),
        order("d", 3, document="1" * 97),
    ]
    result = model.run(at(5), rows)
    assert decided(result) == {
        "a": "NEW R07",
        "b": "DUPLICATE R09",
        "c": "IN_DOUBT R12",
        "d": "IN_DOUBT R12",
    }
    assert result.decision("a").key_source == "EXPRESSION"
    # a resubmission keeps the key of its delivery, also with another document
    again = model.run(at(7), resubmissions=[resubmit("d", 6, document="2")])
    assert again.decision("d/resubmission-1").document_key == "1" * 97


def test_a_doubt_that_has_settled_itself_is_not_run_twice() -> None:
    model = simulator(CONCURRENT)
    model.run(at(1), [order("a")])
    doubt = model.run(at(3), [order("b", 2)], [said("STARTED", "a", 2)])
    assert decided(doubt) == {"b": "IN_DOUBT R10"}
    model.run(at(5), executions=[said("SUCCESS", "a", 4)])
    assert model.run(at(7), resubmissions=[resubmit("b", 6)]).refused == [("r1", "SETTLED")]
    forced = model.run(at(9), resubmissions=[resubmit("b", 8, "r2", force=True)])
    assert decided(forced) == {"b/resubmission-1": "NEW OPERATOR"}


def test_an_entry_of_a_delivery_that_had_waited_starts_at_event_times_now() -> None:
    model = simulator(replace(WITH_HISTORY, enabled=False), WITHOUT_SERVICE)
    model.run(at(5), [order("a")])
    model.run(at(200), [order("newer", 100, uuid="other")])
    model.run(at(200), triggers=[WITH_HISTORY])
    entry = next(e for e in model.history["t", "k"] if e.processing_status == "processing")
    assert (entry.started_at, entry.expires_at) == (at(100), at(220))
    assert entry.delivery_id == "a"


def test_a_finished_document_whose_entry_was_removed_is_known_as_completed() -> None:
    quick = replace(WITH_HISTORY, history_time_to_live_ms=1, execution_timeout_ms=10**9)
    model = simulator(quick, allowed_lateness_ms=0)
    model.run(at(0), [order("a")])
    later = order("far", 120, uuid="other")
    state = model.run(at(120), [later], [said("STARTED", "a", 60)]).trigger_states["t"]
    # the entry starts when the service begins
    assert state.history_removed_until == at(60) + timedelta(milliseconds=1)
    # its completed entry lives until the service's end
    copies = [order("b", 0), order("c", 119), order("d", 121)]
    result = model.run(at(121), copies, [said("ERROR", "a", 120.5)])
    assert decided(result) == {"b": "IN_DOUBT R15", "c": "DUPLICATE R08", "d": "NEW R07"}
    assert result.decision("b").history_state == "UNAVAILABLE"


def test_an_unfinished_document_is_known_after_its_entry_was_removed() -> None:
    quick = replace(WITH_HISTORY, history_time_to_live_ms=1, execution_timeout_ms=10**9)
    model = simulator(quick, allowed_lateness_ms=0)
    model.run(at(0), [order("a")])
    model.run(at(120), [order("far", 120, uuid="other")])
    assert waits(model.run(at(121), [order("b", 0)])) == {"b": ("UNFINISHED_DOCUMENT", "a")}


def test_the_oldest_undecided_holds_removal_back_for_some_days_only() -> None:
    triggers = [WITH_HISTORY, Trigger("off", enabled=False)]
    conditions = [WITHOUT_SERVICE, replace(WITHOUT_SERVICE, trigger_name="off")]
    model = Simulator(triggers, conditions, TRANSPORTS, allowed_lateness_ms=0, removal_hold_days=1)
    model.run(at(0), [order("a")])
    held = model.run(at(24 * 60), [order("b", 24 * 60)])
    assert held.trigger_states["t"].history_removed_until is None
    freed = model.run(at(26 * 60), [order("c", 26 * 60)])
    assert freed.trigger_states["t"].history_removed_until == at(120)


# Executions, recoveries -------------------------------------------------------------------------


def test_an_interrupted_document_comes_back_as_a_recovery() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    result = model.run(at(62), executions=[said("STARTED", "a", 2)])
    decision = result.decision("a/recovery-1")
    assert (decision.status, decision.redelivery) == ("IN_DOUBT", "REDELIVERED")
    assert (decision.history_state, decision.matched_delivery_id) == ("PROCESSING", "a")


def test_a_heartbeat_puts_the_interruption_off() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    beats = [said("STARTED", "a", 2), said("STARTED", "a", 30)]
    assert not model.run(at(62), executions=beats).decisions
    assert decided(model.run(at(90))) == {"a/recovery-1": "IN_DOUBT R10"}


def test_recoveries_count_on_and_end_in_doubt_beyond_the_maximum() -> None:
    model = simulator(Trigger("t"), max_recoveries=1)
    model.run(at(1), [order("a", redelivery_count=-1)])
    second = model.run(at(62), executions=[said("STARTED", "a", 2)])
    assert decided(second) == {"a/recovery-1": "NOT_CHECKED R02"}
    third = model.run(at(130), executions=[said("STARTED", "a/recovery-1", 63)])
    assert decided(third) == {"a/recovery-2": "IN_DOUBT MAX_RECOVERIES"}
    assert third.decision("a/recovery-2").redelivery == "UNDEFINED"


def test_an_interrupted_volatile_document_is_lost() -> None:
    model = simulator()
    model.run(at(1), [order("a", guaranteed=False)])
    result = model.run(at(62), executions=[said("STARTED", "a", 2)])
    assert result.lost == [("a", "t")]
    assert not result.decisions
    assert not result.waiting


def test_a_success_anywhere_among_the_rows_ends_the_document() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    rows = [said("SUCCESS", "a", 3), said("STARTED", "a", 4), said("STARTED", "nothing", 4)]
    assert decided(model.run(at(100), [order("b", 5)], rows)) == {"b": "DUPLICATE R09"}


def test_a_transient_error_ends_the_document_only_beyond_the_last_attempt() -> None:
    model = simulator(replace(WITH_HISTORY, max_retry_attempts=1))
    model.run(at(1), [order("a"), order("b", 1)])
    assert waits(model.run(at(3), executions=[said("TRANSIENT_ERROR", "a", 2)]))
    result = model.run(at(5), executions=[said("TRANSIENT_ERROR", "a", 4, attempt=2)])
    assert decided(result) == {"b": "DUPLICATE R09"}


def test_a_retry_failure_suspends_in_the_run_that_reads_it_until_resume() -> None:
    model = simulator(replace(WITH_HISTORY, on_retry_failure="suspend"))
    model.run(at(1), [order("a")])
    failed = model.run(at(5), [order("b", 4, uuid="x")], [said("TRANSIENT_ERROR", "a", 2)])
    assert waits(failed) == {"b": ("SUSPENDED", None)}
    assert failed.trigger_states["t"].suspended_by == {"RETRY_FAILURE"}
    assert decided(model.run(at(7), commands=[command("RESUME", 6)])) == {"b": "NEW R07"}
    assert model.open_documents["a", "t"].attempts == 0


def test_each_cause_of_a_suspension_is_lifted_by_itself() -> None:
    """18.3 and 18.25: what lifts one cause leaves the others; attempts count anew after RESUME."""
    settings = replace(WITH_HISTORY, on_retry_failure="suspend", max_retry_attempts=1)
    model = simulator(settings)
    model.run(at(1), [order("a")])
    failed = [said("TRANSIENT_ERROR", "a", 2, attempt=2)]
    commands = [command("SUSPEND", 3)]
    suspended = model.run(at(5), executions=failed, commands=commands).trigger_states["t"]
    assert suspended.suspended_by == {"RETRY_FAILURE", "OPERATOR"}
    model.records["t"].suspended_by.add("HISTORY")
    resumed = model.run(at(7), commands=[command("RESUME", 6)], history_unavailable=True)
    assert resumed.trigger_states["t"].suspended_by == {"HISTORY"}
    late = [said("TRANSIENT_ERROR", "a", 4, attempt=2), said("STARTED", "a", 8)]
    assert not model.run(at(9), executions=late).trigger_states["t"].suspended
    assert model.open_documents["a", "t"].attempts == 1


def test_commands_apply_in_the_order_of_their_times() -> None:
    model = simulator()
    both = [command("RESUME", 3), command("SUSPEND", 2)]
    assert decided(model.run(at(5), [order("a")], commands=both)) == {"a": "NEW R07"}
    assert waits(model.run(at(7), [order("b", 6)], commands=[command("SUSPEND", 6)]))


# Resolver, unavailable history ------------------------------------------------------------------


def raising(error: Exception) -> Resolver:
    def resolver(delivery: Delivery) -> str:
        raise error

    return resolver


@pytest.mark.parametrize(
    ("resolver", "expected"),
    [
        (lambda d: "NEW", ("NEW", "R06a", "NEW", None)),
        (lambda d: ("DUPLICATE", "seen"), ("DUPLICATE", "R06b", "DUPLICATE", "seen")),
        (
            lambda d: None,
            (
                "IN_DOUBT",
                "R06g",
                "INVALID",
                "answered None, not one of NEW, DUPLICATE, IN_DOUBT",
            ),
        ),
        (
            raising(TransientError("later")),
            ("IN_DOUBT", "R06e", "TRANSIENT_ERROR", "TransientError: later"),
        ),
        (raising(ValueError("no")), ("IN_DOUBT", "R06f", "ERROR", "ValueError: no")),
    ],
)
def test_the_resolver_settles_what_the_count_cannot(
    resolver: Resolver, expected: tuple[str | None, ...]
) -> None:
    model = simulator(replace(BY_COUNT, resolver="r"), answer=resolver)
    result = model.run(at(1), [order("first"), order("again", redelivery_count=1)])
    assert decided(result)["first"] == "NEW R03"
    assert result.decision("first").resolver_result is None
    d = result.decision("again")
    assert (d.status, d.rule_id, d.resolver_result, d.message) == expected


def test_a_transient_error_stops_its_chain_and_suspends_from_the_next_run_on() -> None:
    asked = []

    def resolver(delivery: Delivery) -> str:
        asked.append(delivery.delivery_id)
        raise TransientError("later")

    suspending = replace(CONCURRENT, resolver="r", suspend_on_preprocessing_error=True)
    model = simulator(suspending, answer=resolver)
    model.run(at(1), [order("a")])
    rows = [order("b", 2), order("c", 3), order("other", 3, uuid="x")]
    result = model.run(at(5), rows, [said("STARTED", "a", 2)])
    assert asked == ["b"]
    assert decided(result) == {"other": "NEW R07"}
    assert waits(result) == {"b": ("SUSPENDED", None), "c": ("BEHIND", "b")}
    assert waits(model.run(at(6))) == {"b": ("SUSPENDED", None), "c": ("SUSPENDED", None)}


def test_a_suspension_by_unavailable_history_ends_with_the_first_run_that_has_it() -> None:
    model = simulator(replace(WITH_HISTORY, suspend_on_preprocessing_error=True))
    assert waits(model.run(at(1), [order("a")], history_unavailable=True)) == {
        "a": ("SUSPENDED", None)
    }
    assert waits(model.run(at(2), history_unavailable=True)) == {"a": ("SUSPENDED", None)}
    assert decided(model.run(at(3))) == {"a": "NEW R07"}


def test_unavailable_history_comes_before_waiting() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    result = model.run(at(3), [order("b", 2)], history_unavailable=True)
    assert decided(result) == {"b": "IN_DOUBT R15"}
    assert result.decision("b").matched_delivery_id is None


# Resubmissions ----------------------------------------------------------------------------------


def test_a_resubmission_is_new_first_in_its_chain_and_only_once() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    model.run(at(62), executions=[said("STARTED", "a", 2)])
    requests = [
        resubmit("a/recovery-1", 63),
        resubmit("a/recovery-1", 64, "r2"),
        resubmit("a", 64, "r3"),
    ]
    result = model.run(at(65), [order("b", 3)], resubmissions=requests)
    decision = result.decision("a/resubmission-1")
    assert (decision.status, decision.rule_id, decision.decided_by) == (
        "NEW",
        "OPERATOR",
        "OPERATOR",
    )
    assert decision.history_state == "PROCESSING"
    assert result.refused == [("r2", "RESUBMITTED"), ("r3", "INTERRUPTED")]
    assert waits(result) == {"b": ("UNFINISHED_DOCUMENT", "a/resubmission-1")}


def test_an_interrupted_resubmission_keeps_its_document_and_the_count_of_recoveries() -> None:
    model = simulator()
    model.run(at(1), [order("a")])
    model.run(at(62), executions=[said("STARTED", "a", 2)])
    edited = resubmit("a/recovery-1", 63, document="edited")
    model.run(at(65), resubmissions=[edited])
    result = model.run(at(200), executions=[said("STARTED", "a/resubmission-1", 66)])
    assert decided(result) == {"a/recovery-2": "IN_DOUBT R10"}
    assert model.arrivals["a/recovery-2", "t"].delivery.document == "edited"


def test_a_resubmission_waits_while_its_trigger_is_suspended() -> None:
    model = simulator(BY_COUNT)
    model.run(at(1), [order("a", redelivery_count=1)])
    stop = [command("SUSPEND", 2)]
    result = model.run(at(4), resubmissions=[resubmit("a", 3)], commands=stop)
    assert waits(result) == {"a/resubmission-1": ("SUSPENDED", None)}


# The rule table ---------------------------------------------------------------------------------


def all_rule_inputs() -> Iterator[tuple[RuleInput, str]]:
    flags = (False, True)
    for values in product(
        flags,
        flags,
        flags,
        flags,
        ("UNDEFINED", "FIRST", "REDELIVERED"),
        ("USABLE", "MISSING", "TOO_LONG"),
        ("NONE", "COMPLETED", "BOTH", "PROCESSING", "UNAVAILABLE"),
        flags,
        ("NEW", "DUPLICATE", "IN_DOUBT", "TRANSIENT_ERROR", "ERROR", "INVALID"),
    ):
        yield RuleInput(*values[:-1]), values[-1]


def rows_that_match(table: list[dict[str, str]], given: RuleInput, answer: str) -> list[tuple]:
    facts = {name: str(value).lower() for name, value in vars(given).items()}
    facts["resolver_result"] = answer.lower()
    return [
        (row["rule_id"], row["status"], row["decided_by"])
        for row in table
        if all(row[n] == "*" or v in row[n].lower().split("|") for n, v in facts.items())
    ]


def test_the_rules_as_written_here_are_those_of_the_rule_table() -> None:
    with RULE_TABLE.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    for facts, answer in all_rule_inputs():
        rule = choose_rule(facts, lambda answer=answer: answer)
        expected = rows_that_match(table, facts, answer)
        assert expected == [(rule.rule_id, rule.status, rule.decided_by)], (facts, answer)


# Random feeds -----------------------------------------------------------------------------------


def assert_invariants(scenario: Scenario) -> None:
    model = scenario.simulator()
    decided_before: Counter[tuple[str, str]] = Counter()
    for run in scenario.runs:
        result = model.run(**run.arguments())
        decided_before.update((d.delivery_id, d.trigger_name) for d in result.decisions)
        waiting = {(w.delivery_id, w.trigger_name) for w in result.waiting}
        assert len(waiting) == len(result.waiting), "a delivery waits twice"
        assert not waiting & set(decided_before), "a decided delivery waits"
    assert all(times == 1 for times in decided_before.values()), "a delivery is decided twice"
    doubled = {i for i, d in model.statuses.items() if d.status in ("DUPLICATE", "IN_DOUBT")}
    written = {(e.delivery_id, e.trigger_name) for es in model.history.values() for e in es}
    assert not doubled & written, "a duplicate or doubtful delivery left history"


@pytest.mark.parametrize("seed", range(100))
def test_a_delivery_is_decided_once_in_seeded_feeds(seed: int) -> None:
    assert_invariants(random_scenario(seed, resolvers=seed % 2 == 0))


@given(scenario=scenarios(resolvers=True))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_delivery_is_decided_once_in_random_feeds(scenario: Scenario) -> None:
    assert_invariants(scenario)


def test_seeded_feeds_repeat_and_reach_every_outcome() -> None:
    first = [random_scenario(seed, resolvers=seed % 2 == 0) for seed in range(150)]
    second = [random_scenario(seed, resolvers=seed % 2 == 0) for seed in range(150)]
    results = [result for scenario in first for result in scenario.play()]
    assert first == second
    rules = {d.rule_id for result in results for d in result.decisions}
    reasons = {w.reason for result in results for w in result.waiting}
    assert {"OPERATOR", "MAX_RECOVERIES", "R05", "R09", "R10", "R12", "R15"} <= rules
    assert reasons == {"DISABLED", "SUSPENDED", "QUEUE_CAPACITY", "UNFINISHED_DOCUMENT", "BEHIND"}


def test_a_success_that_is_heard_late_settles_the_doubt_of_the_recovery() -> None:
    model = simulator(CONCURRENT)
    model.run(at(1), [order("a")])
    model.run(at(3), executions=[said("STARTED", "a", 2)])
    doubt = model.run(at(120))
    assert decided(doubt) == {"a/recovery-1": "IN_DOUBT R10"}
    late = model.run(
        at(122),
        executions=[said("SUCCESS", "a", 121)],
        resubmissions=[resubmit("a/recovery-1", 121)],
    )
    assert late.refused == [("r1", "SETTLED")]


def test_copies_are_in_doubt_like_the_recovery_of_their_document() -> None:
    """Rule 10: copies that come while a document is unfinished are never new."""
    model = simulator()
    model.run(at(0), [order("a")])
    heartbeats = [said("STARTED", "a", minute) for minute in (1, 175)]
    copy = model.run(at(180), [order("b", 170)], heartbeats)
    assert [waits.reason for waits in copy.waiting] == ["UNFINISHED_DOCUMENT"]
    assert decided(model.run(at(240), [order("c", 235)])) == {
        "a/recovery-1": "IN_DOUBT R10",
        "b": "IN_DOUBT R10",
        "c": "IN_DOUBT R10",
    }
