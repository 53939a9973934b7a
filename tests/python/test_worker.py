"""Workers process each document once; what a killed one leaves is in doubt, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.services.calls import safe_echo
from dbt_exactly_once.services.executions import Executions
from dbt_exactly_once.services.worker import Worker, finished_at_signals
from python_udfs import TransientError, Work

NOW = datetime.now(timezone.utc)
# says which document it has been called for, then waits for the file `go`
SERVICE = """
import os, time
from pathlib import Path
from python_udfs import Work, service

@service("ship")
def ship(work: Work) -> str:
    with open("FOLDER/calls", "a") as calls:
        calls.write(work.delivery_id + "\\n")
    while not Path("FOLDER/go").exists():
        time.sleep(0.05)
    return "shipped"
"""
WHOLE = ["--select", "tag:transaction", "execution_state", "dispatched_documents"]


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    shared = {
        "detect_duplicates": True,
        "use_history": True,
        "max_retry_attempts": 2,
        "retry_interval_ms": 0,
    }
    found.seed(
        "triggers",
        [
            {"trigger_name": "parcels", "processing_mode": "concurrent", **shared},
            {"trigger_name": "letters", "processing_mode": "serial", **shared},
        ],
    )
    condition = {"position": 1, "condition_name": "any", "service": "ship"}
    found.seed(
        "trigger_conditions",
        [
            {"trigger_name": "parcels", "document_type": "parcel", **condition},
            {"trigger_name": "letters", "document_type": "letter", **condition},
        ],
    )
    found.run("seed")
    return found


def land(runs: DbtRuns, document_type: str, *names: str, clock: datetime | None = None) -> None:
    runs.land(
        "deliveries",
        [
            {
                "delivery_id": name,
                "received_at": NOW - timedelta(minutes=10) + timedelta(seconds=number),
                "landed_at": NOW,
                "transport": "RABBITMQ",
                "document_type": document_type,
                "guaranteed": True,
                "uuid": name.removesuffix("-again"),
                "document": f"document of {name}",
            }
            for number, name in enumerate(names)
        ],
    )
    runs.run("run", *WHOLE, clock=clock)


def told(runs: DbtRuns) -> Counter[tuple[str, int, str]]:
    return Counter(
        runs.rows("select delivery_id, attempt, event from {landing}.trigger_executions")
    )


def worker_of(runs: DbtRuns, service: Callable[[Work], Any], **options: Any) -> Worker:
    engine = Engine(run_in(runs.spark))
    executions = Executions(engine, f"{runs.landing}.trigger_executions")
    return Worker(
        engine,
        runs.schema,
        executions,
        {"ship": service},
        Work,
        TransientError,
        poll_seconds=0.1,
        echo=lambda _: None,
        **options,
    )


def test_a_time_that_python_cannot_read_stops_no_worker(runs: DbtRuns) -> None:
    """The zero time of Go and .NET is a day too early for Python."""
    runs.spark.sql(
        f"insert into {runs.landing}.deliveries "
        "(delivery_id, received_at, landed_at, transport, document_type, guaranteed, uuid) values "
        "('zero', timestamp '0001-01-01', current_timestamp(), 'RABBITMQ', 'parcel', true, 'zero')"
    )
    land(runs, "parcel", "p1")
    called: dict[str, datetime] = {}

    def ship(work: Work) -> None:
        called[work.delivery_id] = work.received_at

    worker_of(runs, ship).run(once=True)
    assert called == {
        "zero": datetime(1, 1, 3, tzinfo=timezone.utc),
        "p1": NOW - timedelta(minutes=10),
    }


def test_a_worker_goes_through_a_queue_in_order_and_tries_again(runs: DbtRuns) -> None:
    land(runs, "letter", "l1", "l2", "l3", "l4")
    calls: list[Work] = []

    def ship(work: Work) -> str | None:
        calls.append(work)
        if work.delivery_id == "l1" and work.attempt < 3:
            raise TransientError("the van is late")
        if work.delivery_id == "l2":
            raise ValueError("no such street")
        if work.delivery_id == "l3":
            raise TransientError("the van is late")
        return "shipped"

    worker_of(runs, ship, concurrency=3).run(once=True)
    attempts = [("l1", 1), ("l1", 2), ("l1", 3), ("l2", 1), ("l3", 1), ("l3", 2), ("l3", 3)]
    assert [(work.delivery_id, work.attempt) for work in calls] == [*attempts, ("l4", 1)]
    first = calls[0]
    assert first == Work(
        delivery_id="l1",
        trigger_name="letters",
        service="ship",
        attempt=1,
        document_type="letter",
        document_key="l1",
        document="document of l1",
        transport="RABBITMQ",
        errors_to=None,
        received_at=NOW - timedelta(minutes=10),
    )
    runs.run("run", *WHOLE)
    assert sorted(
        runs.rows(
            "select delivery_id, event, message from {schema}.journal_entries order by delivery_id"
        )
    ) == [
        ("l1", "SUCCESS", "shipped"),
        ("l2", "ERROR", "the service has ended in error: ValueError: no such street"),
        (
            "l3",
            "RETRIES_EXHAUSTED",
            "the service has failed 3 times: TransientError: the van is late",
        ),
        ("l4", "SUCCESS", "shipped"),
    ]
    # its branches are gone
    branches = runs.rows("select name from {landing}.trigger_executions.refs where type = 'BRANCH'")
    assert branches == [("main",)]


def test_a_trigger_that_stands_twice_in_a_seed_makes_no_service_run_twice(runs: DbtRuns) -> None:
    """`dbt seed` loads it unchecked: the next run is refused, and a worker may be at work."""
    land(runs, "parcel", "a", "b")
    twice = [{"trigger_name": "parcels", "processing_mode": "concurrent"}] * 2
    runs.seed("triggers", [*twice, {"trigger_name": "letters"}])
    runs.run("seed")
    worker_of(runs, lambda work: "shipped", concurrency=4).run(once=True)
    assert told(runs) == {(name, 1, event): 1 for name in "ab" for event in ("STARTED", "SUCCESS")}


def test_what_a_service_returns_is_kept_whatever_the_clock_of_the_run(runs: DbtRuns) -> None:
    """18.12, 19.9: the clock of a run two days ahead of the worker's hides nothing that the worker
    reports; a return value is kept as JSON with the SUCCESS."""
    land(runs, "letter", "l1", "l2", "l3", clock=NOW + timedelta(days=2))
    returns: dict[str, Any] = {
        "l1": {"parcel": 7, "to": "M\u00fcnchen"},
        "l2": ["x" * 20_000],
        "l3": None,
    }
    calls: list[tuple[str, int]] = []

    def ship(work: Work) -> Any:
        calls.append((work.delivery_id, work.attempt))
        assert len(calls) < 9, calls
        return returns[work.delivery_id]

    worker_of(runs, ship).run(once=True)
    assert calls == [("l1", 1), ("l2", 1), ("l3", 1)]
    kept = runs.rows(
        "select delivery_id, result, message like '%20004 characters%' "
        "from {landing}.trigger_executions where event = 'SUCCESS' order by 1"
    )
    assert kept == [
        ("l1", '{"parcel": 7, "to": "M\u00fcnchen"}', None),
        ("l2", None, True),
        ("l3", None, None),
    ]

    # a copy is shown what the document gave that it repeats
    land(runs, "letter", "l1-again")
    views = ("+duplicates,path:models/report", "+document_lifecycle,path:models/report")
    runs.run("run", "--select", *views)
    given = "original_outcome, original_result, original_ended_at is not null"
    shown = [("l1-again", "SUCCESS", '{"parcel": 7, "to": "M\u00fcnchen"}', True)]
    for view in ("{schema}.duplicates", "{schema}.document_lifecycle where state = 'DUPLICATE'"):
        assert runs.rows(f"select delivery_id, {given} from {view}") == shown

    # the view reads on from what the last run has consumed, which upkeep leaves in one piece
    for number in range(2):
        late = {"delivery_id": "l1", "trigger_name": "letters", "event": "STARTED", "attempt": 2}
        runs.land("trigger_executions", [{"execution_id": f"late {number}", **late}])
    runs.run("run-operation", operation="maintain", variables={"keep_snapshots_hours": 0})
    ((start,),) = runs.rows(
        "select snapshots.parent_id from {landing}.trigger_executions.snapshots as snapshots "
        "inner join {landing}.trigger_executions.refs as refs "
        "on snapshots.snapshot_id = refs.snapshot_id and refs.type = 'TAG'"
    )
    landed = "select delivery_id from {landing}.trigger_executions "
    since = f"with (`start-snapshot-id` = '{start}') where attempt = 2"
    assert runs.rows(landed + since) == [("l1",), ("l1",)]


def test_a_long_call_says_that_it_is_still_at_work(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(runs, "parcel", "p1")
    # as a trigger with an execution timeout of a moment would have it
    monkeypatch.setattr("dbt_exactly_once.services.calls.HEARTBEATS", 10_000_000)
    beats = threading.Event()

    def ship(_: Work) -> None:
        assert beats.wait(120)

    worker = worker_of(runs, ship)
    tell = Worker._report_still_at_work

    def counted(self: Worker) -> None:
        tell(self)
        if told(runs)["p1", 1, "STARTED"] >= 3:
            beats.set()

    monkeypatch.setattr(Worker, "_report_still_at_work", counted)
    worker.run(once=True)
    assert told(runs)["p1", 1, "STARTED"] >= 3
    assert told(runs)["p1", 1, "SUCCESS"] == 1


class ALake:
    """One document for a worker, in place of Spark; a list of writes that fail."""

    relation = "trigger_executions"

    def __init__(self, documents: int, failing: list[str]) -> None:
        self.works = [
            (f"d{number}", "letters", "ship", 1, "letter", "k", "{}", "RABBITMQ", None, NOW, 300)
            for number in range(documents)
        ]
        self.failing = failing
        self.told: list[tuple[str, str]] = []

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.failing[:1] == ["LOOK UP"] and "dispatched" in sql:
            raise RuntimeError(f"[SQLITE_BUSY] {self.failing.pop(0)}")
        return [self.works.pop(0)] if self.works and "dispatched" in sql else []

    def start(self, look_up: Callable[[], Any], _: Callable[[Any], str]) -> Any:
        return look_up()

    def append(self, rows: str) -> None:
        event = next(name for name in ("STARTED", "SUCCESS") if f"'{name}'" in rows)
        if self.failing[:1] == [event]:
            raise RuntimeError(f"[SQLITE_BUSY] {self.failing.pop(0)}")
        self.told += [(event, name) for name in ("d0", "d1") if f"'{name}'" in rows]


def test_a_write_that_fails_does_not_end_a_worker_whose_services_are_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """18.16: a heartbeat, a look-up of more work or the record of an end that fails is said in a
    line and tried again; the services that are at work go on."""
    lake = ALake(2, [])
    said: list[str] = []
    failed = threading.Event()

    def ship(work: Work) -> None:
        if work.delivery_id == "d0":
            # while it is at work, all that the worker writes fails once
            lake.failing += ["LOOK UP", "STARTED", "STARTED", "SUCCESS"]
            assert failed.wait(30)
        # a heartbeat is due every tenth of a second
        time.sleep(0.5)

    def say(line: str) -> None:
        said.append(line)
        if lake.failing == ["SUCCESS"]:
            failed.set()

    Worker(
        lake,  # type: ignore[arg-type]
        "schema",
        lake,  # type: ignore[arg-type]
        {"ship": ship},
        Work,
        TransientError,
        concurrency=2,
        poll_seconds=0.05,
        echo=say,
    ).run(once=True)
    tried_again = [line for line in said if "tries again" in line]
    assert [line.partition("[SQLITE_BUSY] ")[2] for line in tried_again] == [
        "LOOK UP",
        "STARTED",
        "STARTED",
        "SUCCESS",
    ]
    assert tried_again[1].startswith("cannot record that d0 of letters")
    assert sorted(told for told in lake.told if told[0] == "SUCCESS") == [
        ("SUCCESS", "d0"),
        ("SUCCESS", "d1"),
    ]


def test_a_worker_that_is_stopped_again_and_again_waits_for_its_calls() -> None:
    """As the loop does at each turn: between two turns it waits, and does not look at once."""
    turns = 0

    def between() -> None:
        nonlocal turns
        turns += 1
        worker.stop()
        if turns == 5:
            worker._at_work.clear()

    worker = Worker(
        SimpleNamespace(),  # type: ignore[arg-type]
        "none",
        SimpleNamespace(),  # type: ignore[arg-type]
        {},
        Work,
        TransientError,
        poll_seconds=0.1,
        between=between,
    )
    worker._at_work.append(SimpleNamespace(beat_at=float("inf")))  # type: ignore[arg-type]
    began = time.monotonic()
    worker.run()
    assert time.monotonic() - began > 0.25


def test_an_outcome_is_the_same_row_however_often_it_is_written() -> None:
    """The first time may have taken effect; a later time would pass a retry begun since."""
    written: list[str] = []

    class Unsure(ALake):
        def append(self, rows: str) -> None:
            if "'TRANSIENT_ERROR'" in rows:
                written.append(rows)
                if len(written) == 1:
                    raise RuntimeError("504 Gateway Timeout")

    def ship(_: Work) -> None:
        raise TransientError("the van is late")

    lake = Unsure(1, [])
    Worker(
        lake,  # type: ignore[arg-type]
        "schema",
        lake,  # type: ignore[arg-type]
        {"ship": ship},
        Work,
        TransientError,
        poll_seconds=0.05,
        echo=lambda _: None,
    ).run(once=True, tries_again=False)
    assert len(written) == 2
    assert written[0] == written[1]


def test_a_second_signal_ends_a_worker_in_the_middle_of_a_write() -> None:
    go = threading.Event()

    class Signalled(ALake):
        def append(self, rows: str) -> None:
            """The heartbeat of d0."""
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    lake, said = Signalled(1, []), []
    worker = Worker(
        lake,  # type: ignore[arg-type]
        "schema",
        lake,  # type: ignore[arg-type]
        {"ship": lambda _: go.wait(30)},
        Work,
        TransientError,
        poll_seconds=0.05,
        echo=said.append,
    )
    match = "stopped at once; .* come back in doubt: d0 of letters"
    with pytest.raises(ExactlyOnceError, match=match), finished_at_signals(worker, said.append):
        worker.run(once=True)
    go.set()
    assert [line for line in said if "d0" in line] == [
        "stopping: waits for d0 of letters; a second signal leaves them"
    ]


def test_what_cannot_be_worked_for_is_told_in_one_line(
    runs: DbtRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]
    assert main(["worker", *place]) == 1
    assert "no module of python_udfs registers a service" in capsys.readouterr().err
    runs.add_udfs("shipping", SERVICE)
    assert main(["worker", *place, "--service", "sail"]) == 1
    assert "registers the service sail; known are ship" in capsys.readouterr().err
    assert main(["worker", *place]) == 1
    assert f"{runs.schema}.dispatched_documents is not there" in capsys.readouterr().err


# ---- processes


def start(runs: DbtRuns, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "dbt_exactly_once.cli", "worker", "--poll", "0.5"),
            *("--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def calls(runs: DbtRuns) -> list[str]:
    file = runs.folder / "calls"
    return sorted(file.read_text().split()) if file.exists() else []


def wait_for(found: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not found():
        if process.poll() is not None:
            pytest.fail(f"the worker has ended: {process.communicate()[0]}")
        time.sleep(0.1)


def test_two_workers_process_each_document_once(runs: DbtRuns) -> None:
    runs.add_udfs("shipping", SERVICE)
    names = [f"p{number}" for number in range(8)]
    land(runs, "parcel", *names)
    workers = [start(runs, "--once", "--concurrency", "2") for _ in range(2)]
    # both look at the same documents
    wait_for(lambda: len(calls(runs)) >= 2, workers[0])
    (runs.folder / "go").touch()
    for worker in workers:
        output, _ = worker.communicate()
        assert worker.returncode == 0, output
    assert calls(runs) == names
    assert told(runs) == Counter(
        (name, 1, event) for name in names for event in ("STARTED", "SUCCESS")
    )


def test_a_stopped_worker_leaves_no_doubt_and_a_killed_one_just_its_own(runs: DbtRuns) -> None:
    runs.add_udfs("shipping", SERVICE)
    land(runs, "parcel", "p1", "p2", "p3")

    stopped = start(runs, "--concurrency", "2")
    wait_for(lambda: calls(runs) == ["p1", "p2"], stopped)
    stopped.send_signal(signal.SIGTERM)
    (runs.folder / "go").touch()
    output, _ = stopped.communicate()
    assert stopped.returncode == 0, output
    assert "2 SUCCESS" in output
    assert calls(runs) == ["p1", "p2"]

    (runs.folder / "go").unlink()
    killed = start(runs)
    wait_for(lambda: calls(runs) == ["p1", "p2", "p3"], killed)
    killed.kill()
    killed.communicate()
    assert told(runs)["p3", 1, "STARTED"] == 1
    assert ("p3", 1, "SUCCESS") not in told(runs)

    land(runs, "parcel", "p1-again", "p2-again")
    late = datetime.now(timezone.utc) + timedelta(hours=2)
    runs.run("run", *WHOLE, clock=late)
    entries = runs.rows("select delivery_id, processing_status from {schema}.document_history")
    assert sorted(entries) == [
        ("p1", "completed"),
        ("p1", "processing"),
        ("p2", "completed"),
        ("p2", "processing"),
        ("p3", "processing"),
    ]
    statuses = dict(runs.rows("select delivery_id, status from {schema}.document_status"))
    assert statuses == {
        "p1": "NEW",
        "p2": "NEW",
        "p3": "NEW",
        "p1-again": "DUPLICATE",
        "p2-again": "DUPLICATE",
        "p3/recovery-1": "IN_DOUBT",
    }


def test_a_line_that_cannot_be_printed_ends_no_service() -> None:
    lines: list[str] = []
    safe_echo(lines.append)("order \ud800")
    assert lines == ["order ?"]

    def closed(_: str) -> None:
        raise BrokenPipeError

    safe_echo(closed)("order")


def test_a_service_that_returns_what_would_have_to_be_awaited_has_failed(runs: DbtRuns) -> None:
    """It has run nothing, though it was called."""

    async def ship(_: Work) -> None:
        raise AssertionError("is never run")

    land(runs, "parcel", "p1")
    worker_of(runs, lambda work: ship(work)).run(once=True)
    assert told(runs)["p1", 1, "ERROR"] == 1
