"""What services report lands in any order; a document that comes back too often is shown."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
TRIGGERS = ("late", "behind", "ended", "dying", "early")


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """Triggers with a document each, whose name is that of its trigger."""
    found = DbtRuns(spark, profiles_dir, tmp_path)
    settings = {"max_retry_attempts": 3, "retry_interval_ms": 600_000}
    triggers = [{"trigger_name": name, **settings} for name in TRIGGERS[:-1]]
    suspended = {"trigger_name": "early", "on_retry_failure": "suspend"}
    found.seed("triggers", [*triggers, suspended])
    condition = {"position": 1, "condition_name": "all", "service": "ship"}
    found.seed(
        "trigger_conditions",
        [{"trigger_name": name, "document_type": name, **condition} for name in TRIGGERS],
    )
    found.run("seed")
    shared = {"received_at": NOON, "landed_at": NOON, "transport": "RABBITMQ", "guaranteed": True}
    found.land(
        "deliveries",
        [{"delivery_id": n, "uuid": n, "document_type": n, **shared} for n in TRIGGERS],
    )
    report(found, (-1, "early", "TRANSIENT_ERROR", 1))
    found.decide(clock=at(0))
    return found


def report(runs: DbtRuns, *executions: tuple[float, str, str, int | None]) -> None:
    """Land what services report: minutes, trigger, event, attempt."""
    runs.land(
        "trigger_executions",
        [
            {
                "execution_id": f"{name} {event} {attempt} {minutes}",
                "delivery_id": name,
                "trigger_name": name,
                "service": "ship",
                "event": event,
                "attempt": attempt,
                "started_at": at(minutes),
                "recorded_at": at(minutes),
                "message": f"{event} of attempt {attempt}",
            }
            for minutes, name, event, attempt in executions
        ],
    )


def known(runs: DbtRuns) -> dict[str, tuple[Any, ...]]:
    """The last event and the attempts of each open document."""
    rows = runs.rows("select delivery_id, last_event, attempts from {schema}.open_documents")
    return {name: values for name, *values in rows}


def test_a_last_attempt_that_failed_before_the_decision_suspends(runs: DbtRuns) -> None:
    [suspension] = runs.rows(
        "select is_suspended, suspended_cause, suspended_by, suspended_since "
        "from {schema}.trigger_states where trigger_name = 'early'"
    )
    assert suspension == (True, "RETRY_FAILURE", "early", at(-1).replace(tzinfo=None))
    assert known(runs)["early"] == ["TRANSIENT_ERROR", 1]


def test_a_report_that_lands_late_takes_nothing_back(runs: DbtRuns) -> None:
    report(
        runs,
        (1, "late", "TRANSIENT_ERROR", 1),
        (1, "behind", "STARTED", 1),
        (2, "behind", "TRANSIENT_ERROR", 1),
        (12, "behind", "STARTED", 2),
        (10, "ended", "TRANSIENT_ERROR", 1),
    )
    runs.run("run", "--select", "tag:transaction", "execution_state", clock=at(13))
    report(
        runs,
        (0.5, "late", "STARTED", 1),
        (2.5, "behind", "TRANSIENT_ERROR", 1),
        # an end rules, whatever its time
        (9, "ended", "ERROR", 1),
        (9.5, "ended", "STARTED", 1),
    )
    expected = {"late": ["TRANSIENT_ERROR", 1], "behind": ["STARTED", 2]}
    # the view, before a run has taken them
    seen = runs.rows(
        "select delivery_id, last_event, attempts, state from {schema}.execution_state"
    )
    assert {name: values[:2] for name, *values in seen}.items() >= expected.items()
    assert next(state for name, _, _, state in seen if name == "ended") == "ENDED"
    runs.decide(clock=at(14))
    assert known(runs).items() >= expected.items()
    assert "ended" not in known(runs)
    assert runs.rows(
        "select event, message from {schema}.journal_entries where event = 'ERROR'"
    ) == [("ERROR", "the service has ended in error: ERROR of attempt 1")]

    # the end of the attempt that is known as started counts, whatever its writer's clock, and so
    # does the retry of a host whose clock is behind
    report(runs, (11, "behind", "TRANSIENT_ERROR", 2))
    runs.decide(clock=at(15))
    assert known(runs)["behind"] == ["TRANSIENT_ERROR", 2]
    report(runs, (10.5, "behind", "STARTED", 3))
    runs.decide(clock=at(16))
    assert known(runs)["behind"] == ["STARTED", 3]


def test_a_report_without_an_attempt_is_of_the_first(runs: DbtRuns) -> None:
    report(runs, (1, "late", "TRANSIENT_ERROR", None), (1, "ended", "TRANSIENT_ERROR", 0))
    runs.decide(clock=at(2))
    expected = {"late": ["TRANSIENT_ERROR", 1], "ended": ["TRANSIENT_ERROR", 1]}
    assert known(runs).items() >= expected.items()
    # a start that lands late takes no failure back
    report(runs, (0.5, "late", "STARTED", 1), (0.5, "ended", "STARTED", 1))
    runs.decide(clock=at(3))
    assert known(runs).items() >= expected.items()
    # `early` allows no retry; its suspension was lifted before it failed
    command = {"command_id": "c", "command": "RESUME", "issued_by": "ann", "issued_at": at(3)}
    runs.land("trigger_commands", [{"trigger_name": "early", **command}])
    report(runs, (4, "early", "TRANSIENT_ERROR", None))
    runs.decide(clock=at(5))
    assert runs.rows(
        "select suspended_since from {schema}.trigger_states where suspended_cause is not null"
    ) == [(at(4).replace(tzinfo=None),)]


def test_after_a_resumption_attempts_count_from_one(runs: DbtRuns) -> None:
    report(runs, (1, "late", "TRANSIENT_ERROR", 1), (12, "late", "TRANSIENT_ERROR", 2))
    runs.decide(clock=at(13))
    command = {"command_id": "c", "command": "RESUME", "issued_by": "ann", "issued_at": at(14)}
    runs.land("trigger_commands", [{"trigger_name": "late", **command}])
    # heard in one run, the first report is of before the resumption
    report(runs, (13.5, "late", "STARTED", 3), (15, "late", "STARTED", 1))
    runs.decide(clock=at(16))
    assert known(runs)["late"] == ["STARTED", 1]
    report(runs, (16, "late", "TRANSIENT_ERROR", 1))
    runs.decide(clock=at(17))
    assert known(runs)["late"] == ["TRANSIENT_ERROR", 1]


def test_a_document_that_came_back_too_often_is_in_the_logs(runs: DbtRuns) -> None:
    report(runs, (1, "dying", "STARTED", 1))
    runs.decide(clock=at(120), variables={"max_recoveries": 0})
    logs = ["journal_log", "audit_log", "acknowledgements"]
    runs.run("run", "--select", "decided_deliveries", "in_doubt_documents", *logs)
    named = "dying/recovery-1"
    assert runs.rows(
        f"select status, rule_id from {{schema}}.document_status where delivery_id = '{named}'"
    ) == [("IN_DOUBT", "MAX_RECOVERIES")]
    assert runs.rows(
        "select event, message from {schema}.journal_log "
        f"where delivery_id = '{named}' and event = 'IN_DOUBT'"
    ) == [("IN_DOUBT", "its service was interrupted after each of its recoveries")]
    assert runs.rows(f"select kind from {{schema}}.audit_log where delivery_id = '{named}'") == [
        ("IN_DOUBT",)
    ]
    assert runs.rows(
        "select landed_delivery_id, acknowledged_for from {schema}.acknowledgements "
        f"where delivery_id = '{named}'"
    ) == [("dying", "IN_DOUBT")]


def test_a_heartbeat_from_before_a_resume_is_no_new_attempt(runs: DbtRuns) -> None:
    """It lands late, behind the failure that it comes before, and interrupts nothing."""
    issued = {"command_id": "c1", "issued_at": at(1), "issued_by": "me"}
    runs.land("trigger_commands", [{**issued, "trigger_name": "early", "command": "RESUME"}])
    runs.decide(clock=at(2))
    report(runs, (-2, "early", "STARTED", 1))
    runs.decide(clock=at(100))
    assert known(runs)["early"] == ["TRANSIENT_ERROR", 0]


def test_an_event_that_is_none_changes_nothing_and_is_shown(runs: DbtRuns) -> None:
    """No run stops at it for ever; a document whose service says it is not taken for begun."""
    report(runs, (1, "late", "PROGRESS", 1), (1, "early", "STARTED", 1))
    # between two reports that mean something, and after the last attempt has failed
    report(runs, (2, "early", "TRANSIENT_ERROR", 9), (3, "early", "PROGRESS", 9))
    runs.run("build", "--selector", "hot_path", clock=at(4))
    assert "early" in known(runs)
    assert known(runs)["late"] == [None, 0]
    assert runs.rows(
        "select delivery_id, reference_id, message from {schema}.journal_entries "
        "where event = 'UNKNOWN_EVENT' order by delivery_id"
    ) == [
        (
            name,
            "ship",
            "1 executions say PROGRESS, they change nothing: STARTED, SUCCESS, ERROR and "
            "TRANSIENT_ERROR are known",
        )
        for name in ("early", "late")
    ]


def test_a_time_that_nothing_can_show_is_rejected(runs: DbtRuns) -> None:
    """Another writer can append it; runs behind it go on."""
    columns = "delivery_id, received_at, transport, document_type, guaranteed, uuid"
    for number, time in enumerate(("+20000-01-01 00:00:00", "-0001-01-01 00:00:00")):
        runs.spark.sql(
            f"insert into {runs.landing}.deliveries ({columns}) "
            f"values ('t{number}', timestamp '{time}', 'RABBITMQ', 'late', true, 'k')"
        )
    runs.decide(clock=at(5))
    shared = {"received_at": NOON, "landed_at": NOON, "transport": "RABBITMQ", "guaranteed": True}
    runs.land("deliveries", [{"delivery_id": "n", "uuid": "n", "document_type": "late", **shared}])
    runs.decide(clock=at(6))
    assert runs.rows(
        "select delivery_id, reason from {schema}.rejected_deliveries order by delivery_id"
    ) == [("t0", "IMPOSSIBLE_RECEIVED_AT"), ("t1", "IMPOSSIBLE_RECEIVED_AT")]
    assert runs.rows("select status from {schema}.document_status where delivery_id = 'n'") == [
        ("NOT_CHECKED",)
    ]


def orders(spark: SparkSession, profiles_dir: Path, folder: Path, processing_mode: str) -> DbtRuns:
    """A trigger with history whose documents have a service."""
    runs = DbtRuns(spark, profiles_dir, folder)
    history = {"detect_duplicates": True, "use_history": True}
    settings = {"trigger_name": "orders", "processing_mode": processing_mode, **history}
    runs.seed("triggers", [settings])
    condition = {"position": 1, "condition_name": "all", "service": "ship"}
    runs.seed(
        "trigger_conditions", [{"trigger_name": "orders", "document_type": "order", **condition}]
    )
    runs.run("seed")
    return runs


def land_orders(runs: DbtRuns, minutes: float, **documents: str) -> None:
    """Land deliveries, named, of documents with these ids."""
    shared = {"transport": "RABBITMQ", "guaranteed": True, "document_type": "order"}
    times = {"received_at": at(minutes), "landed_at": at(minutes)}
    runs.land(
        "deliveries",
        [{"delivery_id": d, "uuid": u, **shared, **times} for d, u in documents.items()],
    )


def test_a_serial_trigger_finishes_what_it_has_begun_before_one_that_lands_late(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    runs = orders(spark, profiles_dir, tmp_path, "serial")
    land_orders(runs, 0, begun="a")
    runs.decide(clock=at(1))
    started = {"execution_id": "1", "trigger_name": "orders", "event": "STARTED"}
    runs.land("trigger_executions", [{**started, "delivery_id": "begun", "recorded_at": at(2)}])
    land_orders(runs, -30, late="b")
    whole = ("--select", "tag:transaction", "execution_state")
    runs.run("run", *whole, clock=at(3), variables={"as_of": f"{at(3):%Y-%m-%d %H:%M:%S}"})
    assert runs.rows(
        "select delivery_id, state, state_in_words from {schema}.execution_state order by 1"
    ) == [
        ("begun", "STARTED", "its service is at work"),
        ("late", "BEHIND", "its trigger is serial and finishes begun first"),
    ]


def test_a_report_without_times_counts_as_recorded_when_a_run_reads_it(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    """Entries of history without times would take a copy for NEW, and nothing would time out."""
    runs = orders(spark, profiles_dir, tmp_path, "concurrent")
    land_orders(runs, 0, done="a", failed="b", started="c")
    runs.decide(clock=at(1))
    runs.land(
        "trigger_executions",
        [
            {"execution_id": name, "delivery_id": name, "trigger_name": "orders", "event": event}
            for name, event in (("done", "SUCCESS"), ("failed", "ERROR"), ("started", "STARTED"))
        ],
    )
    runs.decide(clock=at(2))
    land_orders(runs, 3, done_again="a", failed_again="b")
    runs.decide(clock=at(4))
    runs.decide(clock=at(100))
    assert runs.rows("select delivery_id, status from {schema}.document_status order by 1") == [
        ("done", "NEW"),
        ("done_again", "DUPLICATE"),
        ("failed", "NEW"),
        ("failed_again", "DUPLICATE"),
        ("started", "NEW"),
        ("started/recovery-1", "IN_DOUBT"),
    ]


def test_a_retry_that_nobody_makes_is_overdue(runs: DbtRuns) -> None:
    """Its document stands in the way of others, as one does whose service never starts."""
    report(runs, (1, "late", "TRANSIENT_ERROR", 1))
    runs.decide(clock=at(2))
    # it is to be repeated after 10 minutes, and has an hour
    for minutes, is_overdue in ((70, False), (72, True)):
        as_of = {"as_of": f"{at(minutes):%Y-%m-%d %H:%M:%S}"}
        runs.run("run", "--select", "execution_state", variables=as_of)
        assert runs.rows(
            "select state, is_overdue from {schema}.execution_state where delivery_id = 'late'"
        ) == [("DISPATCHED", is_overdue)]
