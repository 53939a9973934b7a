"""What is taken again: a rejected landing, once; a document with its key; no settled doubt."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.run.door import ExactlyOnce

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed("triggers", [{"trigger_name": name} for name in ("orders", "archive")])
    condition = {"position": 1, "condition_name": "order", "document_type": "order"}
    found.seed(
        "trigger_conditions",
        [{**condition, "trigger_name": name} for name in ("orders", "archive")],
    )
    found.run("seed")
    return found


def delivery(name: str | None, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": NOW,
        "landed_at": NOW,
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": f"u-{name}",
        "document": '{"order": 1}',
        **columns,
    }


def request(number: int, rejection_id: str, **columns: Any) -> dict[str, Any]:
    return {
        "resubmission_id": f"r{number}",
        "delivery_id": rejection_id,
        "requested_at": NOW.replace(minute=number),
        **columns,
    }


def decided(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(runs.rows("select delivery_id, trigger_name from {schema}.document_status"))


def journal(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(
        runs.rows(
            "select reference_id, event, message from {schema}.journal_entries "
            "where event in ('RESUBMITTED', 'REFUSED')"
        )
    )


def test_a_rejected_landing_is_taken_again_once(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.land(
        "deliveries",
        [
            delivery("d1"),
            delivery("d1", document="other"),
            delivery("d1"),
            delivery(None),
            delivery("d2", guaranteed=None),
            delivery("d3", transport="PIGEON"),
        ],
    )
    runs.decide(clock=NOW)
    rejected: dict[str, str] = dict(
        runs.rows("select reason, rejection_id from {schema}.rejected_deliveries")
    )
    assert sorted(rejected) == [
        "CONFLICTING",
        "MISSING_DELIVERY_ID",
        "MISSING_GUARANTEED",
        "REPEATED",
        "UNKNOWN_TRANSPORT",
    ]
    corrected = json.dumps(
        {
            "delivery_id": "d2",
            "received_at": "2026-05-01T12:00:00Z",
            "transport": "RABBITMQ",
            "document_type": "order",
            "guaranteed": True,
        }
    )
    runs.land(
        "resubmissions",
        [
            request(1, rejected["CONFLICTING"], trigger_name="orders"),
            request(2, rejected["MISSING_DELIVERY_ID"], document="edited", trigger_name=""),
            request(3, rejected["MISSING_GUARANTEED"], document=corrected),
            request(4, rejected["MISSING_GUARANTEED"]),
            request(5, rejected["REPEATED"]),
            # nothing was corrected: it is rejected again
            request(6, rejected["UNKNOWN_TRANSPORT"]),
            request(7, "nothing", trigger_name="orders"),
        ],
    )
    # a run that dies after it has landed them lands nothing twice
    with monkeypatch.context() as patch:
        patch.setattr(ExactlyOnce, "publish", _killed)
        assert not runs.dbt("run", "--select", "tag:transaction", clock=NOW).success
    runs.decide(clock=NOW)
    conflicting, unnamed = rejected["CONFLICTING"], rejected["MISSING_DELIVERY_ID"]
    assert decided(runs) == sorted(
        [
            (conflicting, "orders"),
            ("d1", "archive"),
            ("d1", "orders"),
            ("d2", "archive"),
            ("d2", "orders"),
            (unnamed, "archive"),
            (unnamed, "orders"),
        ]
    )
    assert journal(runs) == [
        ("r1", "RESUBMITTED", f"comes as {conflicting}"),
        ("r2", "RESUBMITTED", f"comes as {unnamed}"),
        ("r3", "RESUBMITTED", "comes as d2"),
        ("r4", "REFUSED", "it was resubmitted before"),
        ("r5", "REFUSED", "it repeats a delivery that has landed"),
        ("r6", "RESUBMITTED", "comes as d3"),
        ("r7", "REFUSED", "no decision is known for it"),
    ]
    assert runs.rows(
        "select delivery_id, document from {landing}.deliveries "
        f"where delivery_id in ('{conflicting}', '{unnamed}', 'd2') and landed_at > "
        "timestamp '2026-05-01 12:00:01' order by document"
    ) == [("d2", None), (unnamed, "edited"), (conflicting, "other")]
    assert runs.rows(
        "select count(*) from {schema}.rejected_deliveries where reason = 'UNKNOWN_TRANSPORT'"
    ) == [(2,)]

    # the first is an old request, delivered once more
    again = [request(number, conflicting, trigger_name="orders") for number in (1, 8)]
    runs.land("resubmissions", again)
    runs.decide(clock=NOW)
    assert journal(runs)[-1] == ("r8", "REFUSED", "its document has succeeded")
    assert len(journal(runs)) == 8
    assert len(decided(runs)) == 7


def test_a_request_that_is_refused_lands_nothing_and_can_be_asked_again(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery("d1", guaranteed=None)])
    runs.decide(clock=NOW)
    [(rejected,)] = runs.rows("select rejection_id from {schema}.rejected_deliveries")
    row = {"delivery_id": "d1", "received_at": "2026-05-01T12:00:00Z", "transport": "RABBITMQ"}
    corrected = {**row, "document_type": "order", "guaranteed": True}
    wanted = {"document": json.dumps(corrected), "trigger_name": "orders"}
    runs.land(
        "resubmissions",
        [
            request(1, rejected, **{**wanted, "trigger_name": "nobody"}),
            {**request(2, rejected, **wanted), "resubmission_id": None},
        ],
    )
    runs.decide(clock=NOW)
    assert sorted(runs.rows("select event, message from {schema}.journal_entries")) == [
        ("REFUSED", "it has no resubmission_id: land it again with one"),
        ("REFUSED", "no trigger is named nobody"),
    ]
    assert runs.rows("select count(*) from {landing}.deliveries") == [(1,)]
    # the operation takes the row as an object, as its description has it
    again = {"delivery_id": rejected, "document": corrected, "trigger_name": "orders"}
    runs.run("run-operation", operation="resubmit", arguments_of_operation=again)
    runs.decide(clock=NOW)
    assert decided(runs) == [("d1", "orders")]


def test_a_rejected_row_that_is_no_json_is_refused_and_stops_no_run(runs: DbtRuns) -> None:
    """Landing rejects NaN, which Python's own parser takes."""
    rejection = {
        "rejection_id": "x",
        "table_name": "deliveries",
        "landed_at": NOW,
        "source_file": "a.jsonl",
        "source_line": 1,
        "reason": "NOT_JSON",
        "raw_text": '{"delivery_id": "d1", "document": {"price": NaN}}',
    }
    # the tables are there from the first run on
    runs.decide(clock=NOW)
    runs.land("rejected_landings", [rejection])
    runs.land("resubmissions", [request(1, "x")])
    runs.land("deliveries", [delivery("d2")])
    runs.decide(clock=NOW)
    assert [(name, event) for name, event, _ in journal(runs)] == [("r1", "REFUSED")]
    assert decided(runs) == [("d2", "archive"), ("d2", "orders")]


def test_an_id_that_another_request_has_is_refused_and_shown(runs: DbtRuns) -> None:
    """An id of a request is its own: of requests with one id the first that landed is answered."""
    # without history a redelivery is in doubt
    runs.seed(
        "triggers",
        [{"trigger_name": name, "detect_duplicates": "true"} for name in ("orders", "archive")],
    )
    runs.run("seed")
    runs.land("deliveries", [delivery(name, redelivery_count=1) for name in ("d1", "d2", "d3")])
    runs.land("deliveries", [delivery(None), delivery(None, document="b")])
    runs.decide(clock=NOW)
    rejected = sorted(runs.rows("select rejection_id from {schema}.rejected_deliveries"))
    ask = {"trigger_name": "orders", "document": "edited"}
    runs.land(
        "resubmissions",
        [
            request(1, "d1", **ask),
            request(1, "d2", **ask),
            request(1, "d1", **{**ask, "trigger_name": "archive"}),
            # the same request again
            request(1, "d1", **ask),
            *(request(2, name, trigger_name="orders") for (name,) in rejected),
        ],
    )
    runs.decide(clock=NOW)
    taken = (
        "its resubmission_id is that of a request for another delivery or trigger: land it again "
    )
    refused = [
        ("r1", "REFUSED", f"{taken}with one of its own"),
        ("r1", "REFUSED", f"{taken}with one of its own"),
    ]
    landed_again = [("r2", "RESUBMITTED", f"comes as {name}") for (name,) in rejected]
    accepted = [("r1", "RESUBMITTED", "comes as d1/resubmission-1")]
    assert journal(runs) == [*refused, *accepted, *landed_again]

    # in a later run: for others once more, and two that were answered
    runs.land(
        "resubmissions",
        [
            request(1, "d3", **ask),
            request(2, "d3", **ask),
            request(1, "d2", **ask),
            request(1, "d1", **ask),
        ],
    )
    runs.decide(clock=NOW)
    again = ("r2", "REFUSED", f"{taken}with one of its own")
    assert journal(runs) == sorted([*refused, refused[0], *accepted, *landed_again, again])
    assert ("d1/resubmission-1", "orders") in decided(runs)


def _killed(*_: Any, **__: Any) -> None:
    raise RuntimeError("killed")


@pytest.mark.parametrize("requested_at", [None, datetime(2100, 1, 1, tzinfo=timezone.utc)])
def test_a_request_lands_its_row_once_whatever_its_time(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch, requested_at: datetime | None
) -> None:
    """The clock that has written a request, if it has, may be ahead of the run's."""
    runs.land("deliveries", [delivery("d1", guaranteed=None)])
    runs.decide(clock=NOW)
    [(rejected,)] = runs.rows("select rejection_id from {schema}.rejected_deliveries")
    corrected = json.dumps(
        {
            "delivery_id": "d1",
            "received_at": "2026-05-01T12:00:00Z",
            "transport": "RABBITMQ",
            "document_type": "order",
            "guaranteed": True,
        }
    )
    again = {**request(1, rejected, document=corrected), "requested_at": requested_at}
    runs.land("resubmissions", [again])
    with monkeypatch.context() as patch:
        patch.setattr(ExactlyOnce, "publish", _killed)
        assert not runs.dbt("run", "--select", "tag:transaction", clock=NOW).success
    runs.decide(clock=NOW)
    assert decided(runs) == [("d1", "archive"), ("d1", "orders")]
    assert journal(runs) == [("r1", "RESUBMITTED", "comes as d1")]


def test_what_no_trigger_takes_has_landed_by_its_rejection_and_holds_back_no_run(
    runs: DbtRuns,
) -> None:
    """Its row had no id, so that the rejected row and the delivery have one name."""
    runs.land("deliveries", [delivery(None, document_type="unheard of")])
    runs.decide(clock=NOW)
    [(rejected,)] = runs.rows("select rejection_id from {schema}.rejected_deliveries")
    for number in (1, 2):
        runs.land("resubmissions", [request(number, rejected)])
        result = runs.dbt("build", "--selector", "hot_path", clock=NOW.replace(minute=number))
        assert result.success, failures(result)
    assert [event for _, event, _ in journal(runs)] == ["RESUBMITTED", "REFUSED"]
    runs.run("build", "--exclude-resource-type", "unit_test", clock=NOW.replace(minute=3))
    assert runs.rows(
        "select trigger_name, step, state from {schema}.document_lifecycle "
        f"where delivery_id = '{rejected}' order by step"
    ) == [
        (None, 1, "RECEIVED"),
        (None, 2, "REJECTED"),
        (None, 3, "RESUBMITTED"),
        (None, 4, "UNROUTED"),
    ]


def test_what_has_landed_by_its_rejection_is_resubmitted_as_any_delivery(runs: DbtRuns) -> None:
    """Its row had no id, so the rejection's is the delivery's."""
    runs.seed("triggers", [{"trigger_name": "orders", "detect_duplicates": True}])
    condition = {"position": 1, "condition_name": "order", "document_type": "order"}
    runs.seed("trigger_conditions", [{**condition, "trigger_name": "orders"}])
    runs.run("seed")
    runs.land("deliveries", [delivery(None, redelivery_count=1)])
    runs.decide(clock=NOW)
    [(rejected,)] = runs.rows("select rejection_id from {schema}.rejected_deliveries")
    in_doubt = "select delivery_id, minute(resubmitted_at) from {schema}.in_doubt_documents"
    for number, resubmitted_at in ((1, None), (2, 2), (3, 2)):
        runs.land("resubmissions", [request(number, rejected, trigger_name="orders")])
        runs.run("run", clock=NOW.replace(minute=number))
        assert runs.rows(in_doubt) == [(rejected, resubmitted_at)], number
    assert runs.rows(
        "select delivery_id, status, rule_id from {schema}.document_status order by delivery_id"
    ) == [(rejected, "IN_DOUBT", "R05"), (f"{rejected}/resubmission-1", "NEW", "OPERATOR")]
    assert [event for _, event, _ in journal(runs)] == ["RESUBMITTED", "RESUBMITTED", "REFUSED"]


ORDERS = {"trigger_name": "orders", "detect_duplicates": True, "use_history": True}


def with_service(runs: DbtRuns) -> None:
    """One trigger, whose documents have a service."""
    condition = {"position": 1, "condition_name": "order", "document_type": "order"}
    runs.seed("trigger_conditions", [{**condition, "trigger_name": "orders", "service": "ship"}])
    runs.seed("triggers", [ORDERS])
    runs.run("seed")


def said(event: str, delivery_id: str, at: datetime = NOW) -> dict[str, Any]:
    return {
        "execution_id": f"{delivery_id} {event} {at}",
        "delivery_id": delivery_id,
        "trigger_name": "orders",
        "service": "ship",
        "attempt": 1,
        "event": event,
        "started_at": NOW,
        "ended_at": None if event == "STARTED" else at,
        "recorded_at": at,
    }


def test_what_comes_back_keeps_the_key_it_was_decided_with(runs: DbtRuns) -> None:
    """Whatever key the trigger has by now: a recovery with another key would be NEW."""
    with_service(runs)
    runs.land("deliveries", [delivery("begun"), delivery("failed", uuid="u2")])
    runs.decide(clock=NOW)
    runs.land(
        "trigger_executions",
        [said("STARTED", "begun"), said("STARTED", "failed"), said("ERROR", "failed")],
    )
    runs.decide(clock=NOW)

    runs.seed("triggers", [{**ORDERS, "key": "%order%"}])
    runs.run("seed")
    runs.land("resubmissions", [request(1, "failed", trigger_name="orders")])
    later = NOW + timedelta(hours=1, minutes=1)
    runs.decide(clock=later)
    assert runs.rows(
        "select delivery_id, document_key, key_source, status, history_state "
        "from {schema}.document_status where delivery_id like '%/%' order by delivery_id"
    ) == [
        ("begun/recovery-1", "u-begun", "UUID", "IN_DOUBT", "PROCESSING"),
        ("failed/resubmission-1", "u2", "UUID", "NEW", "BOTH"),
    ]

    # also where its landed row is gone
    runs.land("deliveries", [delivery("copy", document='{"order": 2}')])
    runs.decide(clock=later)
    runs.spark.sql(f"delete from {runs.landing}.deliveries where delivery_id = 'begun'")
    again = request(2, "begun/recovery-1", trigger_name="orders", document='{"order": 2}')
    runs.land("resubmissions", [again])
    runs.decide(clock=later)
    assert runs.rows(
        "select delivery_id, document_key, key_source, status "
        "from {schema}.document_status where delivery_id in ('copy', 'begun/resubmission-1') "
        "order by delivery_id"
    ) == [
        ("begun/resubmission-1", "u-begun", "UUID", "NEW"),
        ("copy", "2", "EXPRESSION", "NEW"),
    ]


def test_what_was_edited_stays_edited_when_it_is_taken_again(runs: DbtRuns) -> None:
    """Where a request names what an edited document came as; the landed delivery is as received."""
    with_service(runs)
    runs.land("deliveries", [delivery("bad")])
    named = [
        ("bad", '{"order": 9}', "bad/resubmission-1"),
        ("bad/resubmission-1", None, "bad/resubmission-2"),
        ("bad/resubmission-2", None, "bad/resubmission-3"),
        ("bad", None, "bad/resubmission-4"),
    ]
    failed = "bad"
    for number, (name, document, comes_as) in enumerate(named, start=1):
        runs.decide(clock=NOW)
        runs.land("trigger_executions", [said("ERROR", failed)])
        asked = request(number, name, trigger_name="orders", document=document)
        runs.land("resubmissions", [asked])
        failed = comes_as
    runs.decide(clock=NOW)
    documents = dict(runs.rows("select delivery_id, document_hash from {schema}.document_status"))
    received, edited = (sha256(text).hexdigest() for text in (b'{"order": 1}', b'{"order": 9}'))
    assert documents == {
        "bad": received,
        "bad/resubmission-1": edited,
        "bad/resubmission-2": edited,
        "bad/resubmission-3": edited,
        "bad/resubmission-4": received,
    }
    assert journal(runs) == [
        (f"r{number}", "RESUBMITTED", f"comes as {comes_as}")
        for number, (_, _, comes_as) in enumerate(named, start=1)
    ]


def test_views_older_than_a_run_give_a_service_the_edited_document(runs: DbtRuns) -> None:
    """As a worker reads them while the run makes them anew, or after it was killed before."""
    with_service(runs)
    columns = {"document": "as received"}
    runs.land("deliveries", [delivery("d1", **columns)])
    runs.run("run", clock=NOW)
    views = ("dispatched_documents", "service_work")

    def given() -> list[list[tuple[Any, ...]]]:
        return [runs.rows(f"select delivery_id, document from {{schema}}.{view}") for view in views]

    assert given() == [[("d1", "as received")]] * 2
    runs.land("trigger_executions", [said("ERROR", "d1")])
    runs.land("deliveries", [delivery("other", **columns, destination="nobody")])
    runs.decide(clock=NOW.replace(minute=1))
    runs.land("resubmissions", [request(1, "d1", trigger_name="orders", document="edited")])
    runs.decide(clock=NOW.replace(minute=2))
    assert given() == [[("d1/resubmission-1", "edited")]] * 2
    # what the views read does not expire
    runs.run("run-operation", operation="maintain", variables={"keep_snapshots_hours": 0})
    assert given() == [[("d1/resubmission-1", "edited")]] * 2


def test_a_success_that_is_heard_late_settles_the_doubt_of_the_recovery(runs: DbtRuns) -> None:
    with_service(runs)
    runs.land("deliveries", [delivery("slow")])
    runs.decide(clock=NOW)
    runs.land("trigger_executions", [said("STARTED", "slow")])
    later = NOW + timedelta(hours=1, minutes=1)
    runs.decide(clock=later)
    assert decided(runs) == [("slow", "orders"), ("slow/recovery-1", "orders")]

    # in the same run, and once it was published
    runs.land("trigger_executions", [said("SUCCESS", "slow")])
    runs.land("resubmissions", [request(1, "slow/recovery-1", trigger_name="orders")])
    runs.decide(clock=later)
    runs.land("resubmissions", [request(2, "slow/recovery-1", trigger_name="orders")])
    runs.decide(clock=later)
    refused = (
        "its document has succeeded since as slow: give force: true to process it all the same"
    )
    assert journal(runs) == [("r1", "REFUSED", refused), ("r2", "REFUSED", refused)]
    runs.run("run", "--select", "decided_deliveries in_doubt_documents")
    assert runs.rows(
        "select delivery_id, completed_by_delivery_id from {schema}.in_doubt_documents"
    ) == [("slow/recovery-1", "slow")]


@pytest.mark.parametrize(
    ("outcome", "status", "state"),
    [("SUCCESS", "DUPLICATE", "COMPLETED"), ("INTERRUPTED", "IN_DOUBT", "PROCESSING")],
)
def test_a_copy_that_has_waited_is_not_new_when_its_trigger_goes_on(
    runs: DbtRuns, outcome: str, status: str, state: str
) -> None:
    """Nor where the run that hears of the end cannot decide it, and the entries have expired."""
    with_service(runs)
    runs.land("deliveries", [delivery("long")])
    runs.decide(clock=NOW)
    hour = timedelta(hours=1)
    heartbeats = [said("STARTED", "long"), said("STARTED", "long", NOW + 2.9 * hour)]
    runs.land("trigger_executions", heartbeats)
    copies = [
        delivery(f"copy {number}", uuid="u-long", received_at=NOW + (2.7 + number / 10) * hour)
        for number in (1, 2)
    ]
    runs.land("deliveries", copies)
    runs.decide(clock=NOW + 3 * hour)
    assert decided(runs) == [("long", "orders")]

    command = {"trigger_name": "orders", "issued_by": "me", "issued_at": NOW + 3.1 * hour}
    runs.land("trigger_commands", [{**command, "command_id": "c1", "command": "SUSPEND"}])
    runs.decide(clock=NOW + 3.2 * hour)
    if outcome == "SUCCESS":
        runs.land("trigger_executions", [said("SUCCESS", "long")])
    runs.decide(clock=NOW + 4 * hour)
    assert decided(runs) == [("long", "orders")]
    resumed = {"command_id": "c2", "command": "RESUME", "issued_at": NOW + 4.1 * hour}
    runs.land("trigger_commands", [{**command, **resumed}])
    runs.decide(clock=NOW + 5 * hour)
    assert runs.rows(
        "select delivery_id, status, history_state, matched_delivery_id "
        "from {schema}.document_status where delivery_id like 'copy%' order by delivery_id"
    ) == [(f"copy {number}", status, state, "long") for number in (1, 2)]


def test_a_failure_whose_success_is_heard_late_is_none_to_resubmit_in_bulk(runs: DbtRuns) -> None:
    """And a document that matches no condition is not called a success."""
    with_service(runs)
    runs.land(
        "deliveries",
        [
            delivery("failed"),
            delivery("both"),
            delivery("other", document_type="other", destination="orders"),
        ],
    )
    runs.decide(clock=NOW)
    runs.land("trigger_executions", [said("ERROR", "failed"), said("ERROR", "both")])
    runs.decide(clock=NOW)
    # as an older program may say it
    success = {**said("SUCCESS", "both"), "recorded_at": None}
    runs.land("trigger_executions", [success])
    runs.land("resubmissions", [request(1, "other", trigger_name="orders")])
    runs.decide(clock=NOW)
    runs.run("run", "--select", "decided_deliveries failed_documents")
    assert runs.rows("select delivery_id from {schema}.failed_documents") == [("failed",)]
    assert runs.rows(
        "select event, delivery_id, message from {schema}.journal_entries "
        "where event in ('LATE_SUCCESS', 'REFUSED') order by 1"
    ) == [
        (
            "LATE_SUCCESS",
            "both",
            "1 executions, up to SUCCESS: it is NEW and not open; what was in doubt before about "
            "its key is settled",
        ),
        (
            "REFUSED",
            "other",
            "its document matches no condition: there was nothing to run. Land it with a new "
            "delivery_id to have it examined again",
        ),
    ]


def test_upkeep_keeps_the_success_that_settles_a_doubt(runs: DbtRuns) -> None:
    """Without it a person would process once more what has succeeded."""
    with_service(runs)
    runs.land("deliveries", [delivery("slow"), delivery("other")])
    runs.decide(clock=NOW)
    runs.land("trigger_executions", [said("STARTED", "slow"), said("SUCCESS", "other")])
    hour = timedelta(hours=1)
    runs.decide(clock=NOW + 1.1 * hour)
    runs.land("trigger_executions", [said("SUCCESS", "slow")])
    runs.decide(clock=NOW + 2 * hour)
    days_later = NOW + timedelta(days=5)
    runs.land("deliveries", [delivery("next", received_at=days_later)])
    runs.decide(clock=days_later)
    looked = {"trigger_name": "orders"}
    runs.run("run-operation", operation="mark_looked_at", arguments_of_operation=looked)

    runs.run("run-operation", operation="maintain", variables={"keep_journal_days": 1})
    assert runs.rows(
        "select delivery_id, event from {schema}.journal_entries where event like '%SUCCESS'"
    ) == [("slow", "LATE_SUCCESS")]
    runs.land("resubmissions", [request(1, "slow/recovery-1", trigger_name="orders")])
    runs.decide(clock=days_later)
    assert [(name, event) for name, event, _ in journal(runs)] == [("r1", "REFUSED")]


def test_copies_are_in_doubt_like_the_recovery_of_their_document(runs: DbtRuns) -> None:
    """Its service has outlasted the time to live, with heartbeats, and then died."""
    with_service(runs)
    runs.land("deliveries", [delivery("long")])
    runs.decide(clock=NOW)
    hour = timedelta(hours=1)
    heartbeats = [said("STARTED", "long"), said("STARTED", "long", NOW + 2.9 * hour)]
    runs.land("trigger_executions", heartbeats)
    runs.land("deliveries", [delivery("copy", uuid="u-long", received_at=NOW + 2.8 * hour)])
    runs.decide(clock=NOW + 3 * hour)
    assert decided(runs) == [("long", "orders")]
    last = delivery("last copy", uuid="u-long", received_at=NOW + 3.9 * hour)
    runs.land("deliveries", [last])
    runs.decide(clock=NOW + 4 * hour)
    assert runs.rows(
        "select delivery_id, status, history_state from {schema}.document_status "
        "where delivery_id != 'long' order by delivery_id"
    ) == [
        ("copy", "IN_DOUBT", "PROCESSING"),
        ("last copy", "IN_DOUBT", "PROCESSING"),
        ("long/recovery-1", "IN_DOUBT", "PROCESSING"),
    ]


# the request may have the time of its document
@pytest.mark.parametrize("minute", [5, 0])
def test_the_recovery_of_a_resubmission_is_no_duplicate_of_the_failure_before(
    runs: DbtRuns, minute: int
) -> None:
    """It would be neither processed nor waiting, and no request could name it."""
    with_service(runs)
    hour = timedelta(hours=1)
    runs.land("deliveries", [delivery("d")])
    runs.decide(clock=NOW)
    runs.land("trigger_executions", [said("ERROR", "d")])
    runs.land("resubmissions", [request(minute, "d", trigger_name="orders")])
    runs.decide(clock=NOW + hour / 2)
    resubmitted = "d/resubmission-1"
    runs.land("trigger_executions", [said("STARTED", resubmitted, NOW + hour / 2)])
    # a copy in the run of the recovery makes a chain
    runs.land("deliveries", [delivery("copy", uuid="u-d", received_at=NOW + hour)])
    runs.decide(clock=NOW + 2 * hour)
    states = "select delivery_id, status, history_state from {schema}.document_status order by 1"
    assert runs.rows(states) == [
        ("copy", "DUPLICATE", "BOTH"),
        ("d", "NEW", "NONE"),
        ("d/recovery-1", "IN_DOUBT", "PROCESSING"),
        (resubmitted, "NEW", "BOTH"),
    ]
    runs.land("resubmissions", [request(9, "d/recovery-1", trigger_name="orders")])
    runs.decide(clock=NOW + 3 * hour)
    assert ("d/resubmission-2", "NEW", "BOTH") in runs.rows(states)
    # and alone in its run
    again = said("STARTED", "d/resubmission-2", NOW + 3 * hour)
    runs.land("trigger_executions", [again])
    runs.decide(clock=NOW + 5 * hour)
    assert ("d/recovery-2", "IN_DOUBT", "PROCESSING") in runs.rows(states)


def test_a_copy_that_has_waited_is_in_doubt_also_if_it_is_decided_after_the_recovery(
    runs: DbtRuns,
) -> None:
    """Its service has begun and not ended, though the entry of its begin has expired."""
    with_service(runs)
    hour = timedelta(hours=1)
    runs.land("deliveries", [delivery("long")])
    runs.decide(clock=NOW)
    beats = [said("STARTED", "long"), said("STARTED", "long", NOW + 2.9 * hour)]
    runs.land("trigger_executions", beats)
    runs.decide(clock=NOW + 3 * hour)
    copy = delivery("copy", uuid="u-long", received_at=NOW + 3.1 * hour)
    runs.land("deliveries", [copy])
    runs.decide(clock=NOW + 3.2 * hour)
    waiting = "select delivery_id, reason from {schema}.waiting_deliveries"
    assert runs.rows(waiting) == [("copy", "UNFINISHED_DOCUMENT")]
    held = {"delivery_id": "copy", "trigger_name": "orders"}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    runs.decide(clock=NOW + 5 * hour)
    assert runs.rows(waiting) == [("copy", "HELD")]
    assert decided(runs) == [("long", "orders"), ("long/recovery-1", "orders")]

    runs.run("run-operation", operation="release_delivery", arguments_of_operation=held)
    # one that comes later is not affected
    runs.land("deliveries", [delivery("later", uuid="u-long", received_at=NOW + 5.1 * hour)])
    runs.decide(clock=NOW + 6 * hour)
    assert runs.rows(
        "select delivery_id, status, history_state from {schema}.document_status "
        "where delivery_id in ('copy', 'later') order by 1"
    ) == [("copy", "IN_DOUBT", "PROCESSING"), ("later", "NEW", "NONE")]
