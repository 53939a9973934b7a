"""A trigger may be suspended for several reasons: each is lifted by what lifts it, and no other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

MONITOR = """
from pathlib import Path
from python_udfs import resource_monitor

@resource_monitor("shop.up")
def up():
    return (Path("FOLDER") / "up").exists()

@resource_monitor("Shop.Up")
def never():
    return False
"""
# the views of open work look at the clock
BEGIN = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(hours=1)
SHARED = {
    "detect_duplicates": True,
    "use_history": True,
    "processing_mode": "concurrent",
    "max_retry_attempts": 2,
    "retry_interval_ms": 0,
    "execution_timeout_ms": 86_400_000,
    "on_retry_failure": "suspend",
}
TRIGGERS: dict[str, dict[str, Any]] = {
    "resumed": {},
    "raised": {},
    "late": {},
    "watched": {"resource_monitor": "shop.up"},
    "held": {"resource_monitor": "shop.up"},
    "blind": {},
    "stopped": {},
}
WITH_DOCUMENT = ("resumed", "raised", "late", "watched", "held")


def at(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


class Scene:
    """Triggers with a document each, whose name is that of its trigger."""

    def __init__(self, runs: DbtRuns) -> None:
        self.runs = runs
        runs.add_udfs("shop", MONITOR)
        runs.seed(
            "trigger_conditions",
            [
                {
                    "trigger_name": name,
                    "position": 1,
                    "condition_name": "all",
                    "document_type": name,
                    "service": "ship",
                }
                for name in TRIGGERS
            ],
        )
        self.configure()

    def configure(self, **changed: dict[str, Any]) -> None:
        settings = {name: {**own, **changed.get(name, {})} for name, own in TRIGGERS.items()}
        rows = [{"trigger_name": name, **SHARED, **own} for name, own in settings.items()]
        self.runs.seed("triggers", rows)
        self.runs.run("seed")

    def deliver(self, minutes: float, *names: str) -> None:
        shared = {"transport": "RABBITMQ", "guaranteed": True, "redelivery_count": 0}
        times = {"received_at": at(minutes), "landed_at": at(minutes)}
        rows = [{"delivery_id": n, "uuid": n, "document_type": n} for n in names]
        self.runs.land("deliveries", [{**row, **times, **shared} for row in rows])

    def tell(self, *executions: tuple[float, str, str, int]) -> None:
        """What services say: minutes, trigger, event, attempt."""
        rows = []
        for minutes, name, event, attempt in executions:
            time = at(minutes)
            row = {"delivery_id": name, "trigger_name": name, "service": "ship", "event": event}
            times = {"started_at": time, "recorded_at": time}
            execution_id = f"{name} {event} {attempt} {minutes}"
            rows.append({**row, **times, "attempt": attempt, "execution_id": execution_id})
        self.runs.land("trigger_executions", rows)

    def fail(self, minutes: float, *names: str) -> None:
        """All attempts that a document has."""
        for number in range(3):
            for event in ("STARTED", "TRANSIENT_ERROR"):
                minutes += 0.1
                self.tell(*((minutes, name, event, number + 1) for name in names))

    def command(self, minutes: float, command: str, *names: str) -> None:
        rows = [
            {
                "command_id": f"{command} {name} {minutes}",
                "trigger_name": name,
                "command": command,
                "issued_at": at(minutes),
                "issued_by": "me",
            }
            for name in names
        ]
        self.runs.land("trigger_commands", rows)

    def run(self, minutes: float, **variables: Any) -> None:
        self.runs.run(
            "run",
            "--select",
            "tag:transaction",
            "execution_state",
            "dispatched_documents",
            clock=at(minutes),
            variables=variables or None,
        )

    @property
    def causes(self) -> dict[str, list[str]]:
        """Why triggers are suspended, without those that are not."""
        rows = self.runs.rows(
            "select trigger_name, sort_array(suspensions.cause) from {schema}.trigger_states "
            "where is_suspended"
        )
        return {name: list(causes) for name, causes in rows}

    @property
    def states(self) -> dict[str, tuple[str, int]]:
        """State and attempts of each open document."""
        rows = self.runs.rows("select delivery_id, state, attempts from {schema}.execution_state")
        return {name: (state, attempts) for name, state, attempts in rows}


@pytest.fixture
def scene(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> Scene:
    return Scene(DbtRuns(spark, profiles_dir, tmp_path))


def test_a_monitor_answers_for_its_own_triggers_alone(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's name may differ from its own in capitals only."""
    monkeypatch.setitem(TRIGGERS, "other", {"resource_monitor": "Shop.Up"})
    scene = Scene(DbtRuns(spark, profiles_dir, tmp_path))
    scene.deliver(0, "watched", "other")
    scene.run(1)
    scene.fail(3, "watched", "other")
    (scene.runs.folder / "up").touch()
    scene.run(5)
    assert scene.causes == {name: ["RETRY_FAILURE"] for name in ("watched", "other")}
    scene.run(7)
    assert scene.causes == {"other": ["RETRY_FAILURE"]}


def test_what_suspends_a_trigger_is_lifted_by_itself_and_attempts_count_anew(scene: Scene) -> None:
    """18.3 and 18.25: executions recorded before a trigger was resumed never count again, whichever
    run hears of later ones, and each cause of a suspension is lifted by what lifts it alone.
    """
    scene.deliver(0, *WITH_DOCUMENT)
    scene.run(1)

    # ---- services fail while an operator suspends one trigger; history cannot be read
    scene.command(2, "SUSPEND", "held")
    scene.fail(3, *WITH_DOCUMENT)
    scene.deliver(3, "blind")
    scene.command(4, "SUSPEND", "stopped")
    scene.run(5, history_unavailable=True)
    assert scene.causes == {
        **{name: ["RETRY_FAILURE"] for name in ("resumed", "raised", "late", "watched")},
        "held": ["OPERATOR", "RETRY_FAILURE"],
        "blind": ["HISTORY_ERROR"],
        "stopped": ["OPERATOR"],
    }
    # it does not know that history could not be read
    scene.runs.run("test", "--select", "a_decision_names_a_rule_that_matches_its_evidence")

    # ---- the monitor answers, operators resume; history still cannot be read
    (scene.runs.folder / "up").touch()
    scene.configure(raised={"max_retry_attempts": 5})
    scene.command(6, "RESUME", "resumed", "raised", "late", "blind", "stopped")
    # told before the RESUME, and after it, in one run
    scene.tell((5.5, "late", "TRANSIENT_ERROR", 3), (6.5, "late", "STARTED", 1))
    scene.run(7, history_unavailable=True)
    assert scene.causes == {"held": ["OPERATOR"], "blind": ["HISTORY_ERROR"]}
    assert scene.states == {
        **dict.fromkeys(("resumed", "raised", "watched"), ("DISPATCHED", 0)),
        "late": ("STARTED", 1),
        "held": ("SUSPENDED", 0),
    }

    # ---- a first attempt is at work
    again = ("resumed", "raised", "watched")
    scene.tell(*((8, name, "STARTED", 1) for name in again))
    at_work = dict.fromkeys((*again, "late"), ("STARTED", 1))
    assert scene.states == {**at_work, "held": ("SUSPENDED", 0)}
    scene.run(9)
    others = {"held": ("SUSPENDED", 0), "blind": ("DISPATCHED", 0)}
    assert scene.states == {**at_work, **others}
    assert scene.causes == {"held": ["OPERATOR"]}

    # ---- a slow writer lands what was recorded before the RESUME
    scene.tell((5.7, "resumed", "TRANSIENT_ERROR", 3), (5.7, "late", "TRANSIENT_ERROR", 3))
    scene.command(10, "RESUME", "held")
    scene.run(11)
    assert scene.states == {**at_work, **dict.fromkeys(("held", "blind"), ("DISPATCHED", 0))}
    assert scene.causes == {}
    work = "select trigger_name, attempt from {schema}.dispatched_documents order by 1"
    assert scene.runs.rows(work) == [("blind", 1), ("held", 1)]
    assert scene.runs.rows(
        "select event, reference_id from {schema}.journal_entries "
        "where trigger_name = 'held' and event in ('SUSPENDED', 'RESUMED') order by happened_at, 2"
    ) == [("SUSPENDED", "OPERATOR"), ("SUSPENDED", "RETRY_FAILURE"), ("RESUMED", None)]


def test_each_command_is_followed_if_all_of_a_file_have_one_id(scene: Scene) -> None:
    given = {"command_id": "c1", "issued_at": at(1), "issued_by": "me"}
    names = ("held", "stopped")
    scene.runs.land(
        "trigger_commands",
        [{**given, "trigger_name": name, "command": "SUSPEND"} for name in names]
        # the same one again, and one that no trigger has
        + [{**given, "trigger_name": name, "command": "SUSPEND"} for name in ("held", "nobody")],
    )
    scene.run(2)
    assert scene.causes == {name: ["OPERATOR"] for name in names}
    assert scene.runs.rows(
        "select event, trigger_name, reference_id from {schema}.journal_entries order by 1, 2"
    ) == [
        ("IGNORED_COMMAND", "nobody", "c1"),
        ("SUSPENDED", "held", "OPERATOR"),
        ("SUSPENDED", "stopped", "OPERATOR"),
    ]
