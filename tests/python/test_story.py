"""A day in the life of three triggers, told step by step: what lands, and what the views show.

`orders` is serial and tries again twice. `invoices` suspends itself when a retry fails. `parcels`
is concurrent, and takes only parcels with a weight.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

DAY = datetime(2026, 5, 1, tzinfo=timezone.utc)
TRIGGERS = [
    {"trigger_name": "orders", "max_retry_attempts": 2, "retry_interval_ms": 600_000},
    {
        "trigger_name": "invoices",
        "processing_mode": "concurrent",
        "on_retry_failure": "suspend",
    },
    {"trigger_name": "parcels", "processing_mode": "concurrent"},
]
CONDITIONS = [
    {"trigger_name": "orders", "document_type": "order", "service": "book"},
    {"trigger_name": "invoices", "document_type": "invoice", "service": "post"},
    {
        "trigger_name": "parcels",
        "document_type": "parcel",
        "filter": "%weight:double% > 0",
        "service": "ship",
    },
]
TYPES = {"o": "order", "i": "invoice", "p": "parcel"}
SERVICES = {"orders": "book", "invoices": "post", "parcels": "ship"}
VIEWS = [
    "decided_deliveries",
    "waiting_documents",
    "document_lifecycle",
    "journal_log",
    "audit_log",
    "error_documents",
    "acknowledgements",
]


def at(time: str) -> datetime:
    hours, minutes = time.split(":")
    return DAY + timedelta(hours=int(hours), minutes=int(minutes))


class Day:
    """The lake on that day; times of day are texts such as 08:10."""

    def __init__(self, runs: DbtRuns) -> None:
        self.runs = runs
        self.number = 0
        shared = {"detect_duplicates": True, "use_history": True}
        runs.seed("triggers", [{**shared, **trigger} for trigger in TRIGGERS])
        runs.seed(
            "trigger_conditions",
            [{"position": 1, "condition_name": "any", **condition} for condition in CONDITIONS],
        )
        runs.run("seed", clock=at("07:00"))

    def deliver(self, time: str, *names: str, copy_of: str = "", **columns: Any) -> None:
        """Deliveries; the first letter of a name says of what."""
        self.runs.land(
            "deliveries",
            [
                {
                    "delivery_id": name,
                    "received_at": at(time),
                    "landed_at": at(time),
                    "transport": "RABBITMQ",
                    "document_type": TYPES[name[0]],
                    "guaranteed": True,
                    "uuid": copy_of or name,
                    "errors_to": "publisher",
                    "document": f'{{"name": "{name}", "weight": 2}}',
                    **columns,
                }
                for name in names
            ],
        )

    def tell(self, trigger: str, *said: tuple[str, str, int, str]) -> None:
        """Executions: time, delivery, attempt, event."""
        rows = []
        for time, name, attempt, event in said:
            self.number += 1
            rows.append(
                {
                    "execution_id": f"e{self.number}",
                    "delivery_id": name,
                    "trigger_name": trigger,
                    "service": SERVICES[trigger],
                    "attempt": attempt,
                    "event": event,
                    "started_at": at(time),
                    "ended_at": None if event == "STARTED" else at(time),
                    "message": f"{event.lower()} of {name}" if "ERROR" in event else None,
                    "recorded_at": at(time),
                }
            )
        self.runs.land("trigger_executions", rows)

    def ask(self, time: str, name: str, trigger: str, document: str | None = None) -> None:
        """A request to take a delivery again."""
        self.number += 1
        self.runs.land(
            "resubmissions",
            [
                {
                    "resubmission_id": f"r{self.number}",
                    "delivery_id": name,
                    "trigger_name": trigger,
                    "requested_at": at(time),
                    "document": document,
                }
            ],
        )

    def run(self, time: str, *more: str) -> None:
        """A run whose clock, and that of the views it makes, is at a time of that day."""
        self.runs.run(
            "run",
            "--select",
            "tag:transaction",
            "execution_state",
            "dispatched_documents",
            *more,
            clock=at(time),
            variables={"as_of": f"{at(time):%Y-%m-%d %H:%M:%S}"},
        )
        # 19.6: what gates a publication holds of each run
        self.runs.run("test", "--select", "every_step_of_a_document_is_an_allowed_one")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(self.runs.rows(sql), key=str)

    @property
    def work(self) -> list[tuple[Any, ...]]:
        return self.rows("select delivery_id, attempt from {schema}.dispatched_documents")

    @property
    def states(self) -> dict[str, str]:
        return dict(self.rows("select delivery_id, state from {schema}.execution_state"))

    @property
    def statuses(self) -> dict[str, str]:
        return {
            name: f"{status} by {decided_by}"
            for name, status, decided_by in self.rows(
                "select delivery_id, status, decided_by from {schema}.document_status"
            )
        }

    @property
    def acknowledged(self) -> dict[str, tuple[str, str]]:
        return {
            name: (f"{time:%H:%M}", acknowledged_for)
            for name, time, acknowledged_for in self.rows(
                "select delivery_id, to_utc_timestamp(acknowledged_at, 'UTC'), acknowledged_for "
                "from {schema}.acknowledgements"
            )
        }

    @property
    def waiting(self) -> list[tuple[Any, ...]]:
        return self.rows("select delivery_id, reason from {schema}.waiting_deliveries")

    def journal(self, since: str) -> list[tuple[Any, ...]]:
        return self.rows(
            "select event, delivery_id, message from {schema}.journal_log "
            f"where happened_at >= timestamp '{at(since):%Y-%m-%d %H:%M:%S}'"
        )

    def life(self, name: str) -> list[str]:
        rows = self.runs.rows(
            "select state from {schema}.document_lifecycle "
            f"where delivery_id = '{name}' order by step"
        )
        return [state for (state,) in rows]


@pytest.fixture
def day(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> Day:
    return Day(DbtRuns(spark, profiles_dir, tmp_path))


def test_the_story_of_a_day(day: Day) -> None:
    # ---- 08:00, everything is new; a parcel without a weight matches nothing
    day.deliver("08:00", "o1", "o2", "o3", "o4", "i1", "p1", "p3")
    day.deliver("08:00", "p2", guaranteed=False)
    day.deliver("08:00", "p4", document='{"name": "p4"}')
    day.run("08:00", *VIEWS)
    assert day.statuses == {
        **dict.fromkeys(["o1", "o2", "o3", "o4", "i1", "p1", "p3", "p4"], "NEW by HISTORY"),
        "p2": "NOT_CHECKED by NONE",
    }
    # of the serial trigger one at a time
    assert day.work == [("i1", 1), ("o1", 1), ("p1", 1), ("p2", 1), ("p3", 1)]
    assert day.states["o2"] == "BEHIND"
    assert day.acknowledged == {"p4": ("08:00", "UNMATCHED")}
    assert day.journal("08:00") == [
        (
            "UNMATCHED",
            "p4",
            "it matches no condition of the trigger: acknowledged and discarded",
        )
    ]
    assert day.life("p4") == ["RECEIVED", "NEW", "UNMATCHED"]

    # ---- 08:05, the services are at work; the queue goes on without a run
    day.tell("orders", ("08:01", "o1", 1, "STARTED"), ("08:02", "o1", 1, "SUCCESS"))
    assert day.states["o1"] == "ENDED"
    assert ("o2", 1) in day.work
    day.tell("orders", ("08:05", "o2", 1, "STARTED"), ("08:06", "o2", 1, "TRANSIENT_ERROR"))
    day.tell("invoices", ("08:05", "i1", 1, "STARTED"), ("08:06", "i1", 1, "TRANSIENT_ERROR"))
    day.tell("parcels", ("08:05", "p1", 1, "STARTED"), ("08:06", "p1", 1, "SUCCESS"))
    # these two are not heard of again
    day.tell("parcels", ("08:05", "p2", 1, "STARTED"), ("08:05", "p3", 1, "STARTED"))
    # a copy of what has ended, and an invoice for a trigger that is about to be suspended
    day.deliver("08:07", "p1-again", copy_of="p1")
    day.deliver("08:07", "i2")

    # ---- 08:10
    day.run("08:10")
    assert day.states == {
        "o2": "RETRY",
        "o3": "BEHIND",
        "o4": "BEHIND",
        "i1": "SUSPENDED",
        "p2": "STARTED",
        "p3": "STARTED",
    }
    assert day.work == []
    assert day.waiting == [("i2", "SUSPENDED")]
    assert day.statuses["p1-again"] == "DUPLICATE by HISTORY"
    assert day.rows(
        "select trigger_name, suspended_cause, suspended_by, suspended_reason, "
        "cast(suspended_since as string) from {schema}.trigger_states where is_suspended"
    ) == [("invoices", "RETRY_FAILURE", "i1", "transient_error of i1", "2026-05-01 08:06:00")]
    assert day.acknowledged == {
        "p4": ("08:00", "UNMATCHED"),
        "o1": ("08:10", "SUCCESS"),
        "p1": ("08:10", "SUCCESS"),
        "p1-again": ("08:10", "DUPLICATE"),
    }
    assert [(event, name) for event, name, _ in day.journal("08:10")] == [
        ("DUPLICATE", "p1-again"),
        ("SUSPENDED", None),
    ]

    # ---- 08:30, an error, a success at the third attempt, and the operator resumes invoices
    day.tell(
        "orders",
        ("08:17", "o2", 2, "STARTED"),
        ("08:17", "o2", 2, "TRANSIENT_ERROR"),
        ("08:27", "o2", 3, "STARTED"),
        ("08:28", "o2", 3, "SUCCESS"),
        ("08:28", "o3", 1, "STARTED"),
        ("08:29", "o3", 1, "ERROR"),
        ("08:29", "o4", 1, "STARTED"),
        ("08:29", "o4", 1, "TRANSIENT_ERROR"),
    )
    day.runs.land(
        "trigger_commands",
        [
            {
                "command_id": "c1",
                "trigger_name": "invoices",
                "command": "RESUME",
                "issued_at": at("08:20"),
                "issued_by": "ann",
            }
        ],
    )
    day.ask("08:20", "p1-again", "parcels")
    day.run("08:30")
    assert day.states == {
        "o4": "RETRY",
        "i1": "DISPATCHED",
        "i2": "DISPATCHED",
        "p2": "STARTED",
        "p3": "STARTED",
    }
    # attempts count anew after the resumption
    assert day.work == [("i1", 1), ("i2", 1)]
    assert day.waiting == []
    assert day.rows(
        "select delivery_id, errors_to, failed_by, message, document from {schema}.error_documents"
    ) == [
        ("o3", "publisher", "ERROR", "the service has ended in error: error of o3", document("o3"))
    ]
    assert day.journal("08:30") == [
        ("ERROR", "o3", "the service has ended in error: error of o3"),
        ("REFUSED", "p1-again", "it is a DUPLICATE, which is not processed again"),
        ("RESUMED", None, "the trigger takes deliveries again"),
    ]
    assert day.life("o2") == [
        "RECEIVED",
        "NEW",
        "DISPATCHED",
        "STARTED",
        "TRANSIENT_ERROR",
        "STARTED",
        "TRANSIENT_ERROR",
        "STARTED",
        "SUCCESS",
    ]
    assert day.life("i2") == ["RECEIVED", "WAITING", "NEW", "DISPATCHED"]

    # ---- 09:30, the last attempt of o4 has failed; nobody has heard of p2 and p3 for an hour
    day.tell(
        "orders",
        ("08:45", "o4", 2, "TRANSIENT_ERROR"),
        ("09:00", "o4", 3, "TRANSIENT_ERROR"),
    )
    day.tell("invoices", ("08:40", "i1", 1, "STARTED"), ("08:41", "i1", 1, "SUCCESS"))
    day.tell("invoices", ("08:40", "i2", 1, "STARTED"), ("08:41", "i2", 1, "SUCCESS"))
    day.run("09:30")
    assert day.states == {}
    assert day.statuses["p3/recovery-1"] == "IN_DOUBT by HISTORY"
    assert day.journal("09:30") == [
        (
            "INTERRUPTED",
            "p3",
            "the service was interrupted, comes back as p3/recovery-1",
        ),
        (
            "IN_DOUBT",
            "p3/recovery-1",
            "history knows its key as processing, and not as completed; "
            "latest entry by delivery p3",
        ),
        (
            "LOST",
            "p2",
            "the service was interrupted and a volatile document does not come back",
        ),
        (
            "RETRIES_EXHAUSTED",
            "o4",
            "the service has failed 3 times: transient_error of o4",
        ),
    ]
    assert day.rows("select kind, audit_id, trigger_name, document from {schema}.audit_log") == [
        ("IN_DOUBT", "p3/recovery-1", "parcels", document("p3"))
    ]
    assert day.acknowledged["o4"] == ("09:30", "RETRIES_EXHAUSTED")
    assert "p2" not in day.acknowledged
    assert "p3" not in day.acknowledged
    assert day.acknowledged["p3/recovery-1"] == ("09:30", "IN_DOUBT")

    # ---- 09:40, ann has looked: the parcel was not shipped; she asks twice
    day.ask("09:35", "p3/recovery-1", "parcels", document='{"name": "p3", "weight": 3}')
    day.ask("09:36", "p3/recovery-1", "parcels")
    day.run("09:40")
    assert day.statuses["p3/resubmission-1"] == "NEW by OPERATOR"
    assert day.rows("select delivery_id, document from {schema}.dispatched_documents") == [
        ("p3/resubmission-1", '{"name": "p3", "weight": 3}')
    ]
    assert day.journal("09:40") == [
        ("REFUSED", "p3/recovery-1", "it was resubmitted before"),
        ("RESUBMITTED", "p3/recovery-1", "comes as p3/resubmission-1"),
    ]

    # ---- 09:50, it is shipped; and every document is delivered a second time
    day.tell(
        "parcels",
        ("09:45", "p3/resubmission-1", 1, "STARTED"),
        ("09:46", "p3/resubmission-1", 1, "SUCCESS"),
    )
    for name in ("o1", "o2", "o3", "o4", "i1", "i2", "p1", "p3"):
        day.deliver("09:47", f"{name}-second", copy_of=name)
    day.run("09:50")
    assert {status for name, status in day.statuses.items() if name.endswith("-second")} == {
        "DUPLICATE by HISTORY"
    }
    assert day.life("p3") == [
        "RECEIVED",
        "NEW",
        "DISPATCHED",
        "STARTED",
        "INTERRUPTED",
        "RECOVERED",
    ]
    assert day.life("p3/recovery-1") == ["RECEIVED", "IN_DOUBT", "RESUBMITTED"]
    assert day.life("p3/resubmission-1") == [
        "RECEIVED",
        "NEW",
        "DISPATCHED",
        "STARTED",
        "SUCCESS",
    ]
    assert day.life("p2") == ["RECEIVED", "NOT_CHECKED", "DISPATCHED", "STARTED", "LOST"]
    day.runs.run("test", "--select", "every_step_in_all_runs_is_an_allowed_one")
    assert day.states == {}
    assert day.waiting == []


def document(name: str) -> str:
    return f'{{"name": "{name}", "weight": 2}}'
