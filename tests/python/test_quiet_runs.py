"""A run in which nothing lands publishes what it finds about deliveries and triggers of before."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
# an old feed, which lands days after it was received
LANDED = 6000


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def configure(runs: DbtRuns, *names: str, **settings: Any) -> None:
    shared = {
        "detect_duplicates": True,
        "use_history": True,
        "processing_mode": "concurrent",
        "history_time_to_live_ms": 600_000,
        "queue_capacity": 1,
    }
    runs.seed("triggers", [{"trigger_name": name, **shared, **settings} for name in names])
    condition = {"position": 1, "condition_name": "all", "service": "ship"}
    conditions = [{**condition, "trigger_name": name, "document_type": name} for name in names]
    runs.seed("trigger_conditions", conditions)
    runs.run("seed")


def land(runs: DbtRuns, kind: str, **received: int) -> None:
    """A delivery for each name, received at a minute; the first letter is its document."""
    runs.land(
        "deliveries",
        [
            {
                "delivery_id": name,
                "received_at": at(minute),
                "landed_at": at(LANDED),
                "transport": "RABBITMQ",
                "document_type": kind,
                "guaranteed": True,
                "uuid": name[0],
            }
            for name, minute in received.items()
        ],
    )


def tell(runs: DbtRuns, trigger: str, name: str, event: str, minute: int) -> None:
    runs.land(
        "trigger_executions",
        [
            {
                "execution_id": f"{name} {event}",
                "delivery_id": name,
                "trigger_name": trigger,
                "attempt": 1,
                "event": event,
                "started_at": at(minute),
                "recorded_at": at(minute),
            }
        ],
    )


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A lake for the tests here, one after the other."""
    return DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("quiet"))


def test_a_copy_of_an_unfinished_document_is_examined_once_and_lets_others_pass(
    runs: DbtRuns,
) -> None:
    configure(runs, "full", "leaves")
    # a2 comes after the time to live, but while a1 is unfinished
    land(runs, "full", a1=0, a2=300, b1=301)
    waiting = "select delivery_id, reason from {schema}.waiting_deliveries order by 1"
    decided = "select delivery_id, status, rule_id from {schema}.document_status order by 1"
    runs.decide(clock=at(LANDED + 1))
    assert runs.rows(waiting) == [("a2", "QUEUE_CAPACITY"), ("b1", "QUEUE_CAPACITY")]

    runs.decide(clock=at(LANDED + 2))
    assert runs.rows(waiting) == [("a2", "UNFINISHED_DOCUMENT"), ("b1", "QUEUE_CAPACITY")]
    runs.decide(clock=at(LANDED + 3))
    assert runs.rows(waiting) == [("a2", "UNFINISHED_DOCUMENT")]
    assert runs.rows(decided) == [("a1", "NEW", "R07"), ("b1", "NEW", "R07")]
    # and now that all of it is known, nothing is published
    runs.decide(clock=at(LANDED + 4))
    assert runs.rows("select max(run_number) from {schema}.published_runs") == [(3,)]

    tell(runs, "full", "a1", "SUCCESS", LANDED + 5)
    runs.decide(clock=at(LANDED + 6))
    assert runs.rows(waiting) == []
    assert ("a2", "DUPLICATE", "R08") in runs.rows(decided)


def test_a_trigger_that_leaves_the_seed_keeps_the_settings_it_had_last(runs: DbtRuns) -> None:
    land(runs, "leaves", c1=400)
    configure(runs, "full", "leaves", execution_timeout_ms=60_000)
    runs.decide(clock=at(LANDED + 10))
    tell(runs, "leaves", "c1", "STARTED", LANDED + 11)
    runs.decide(clock=at(LANDED + 11))

    configure(runs, "full", "leaves", execution_timeout_ms=86_400_000)
    runs.decide(clock=at(LANDED + 11))
    configure(runs, "full")
    runs.decide(clock=at(LANDED + 20))

    opened = "select delivery_id, last_event from {schema}.open_documents where trigger_name = "
    assert runs.rows(opened + "'leaves'") == [("c1", "STARTED")]
