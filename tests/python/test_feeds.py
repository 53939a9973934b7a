"""Whole feeds, by real dbt runs: the demo feed, cut and uncut, and the feed of three days."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from feeds import TRANSPORTS
from pyspark.sql import SparkSession
from reference_model import Condition, Delivery, Execution, Simulator, Trigger
from test_agreement import differences
from three_day_feed import TYPES, landings, three_day_feed

CLOCK = datetime(2026, 11, 22, tzinfo=timezone.utc)
BY_HISTORY = {("NEW", "R07"): 3881, ("DUPLICATE", "R09"): 130}
EITHER_WAY = {("IN_DOUBT", "R12"): 3, ("NOT_CHECKED", "R01"): 127}
BY_COUNT = {("NEW", "R03"): 2599, ("IN_DOUBT", "R05"): 1415, ("NOT_CHECKED", "R01"): 127}


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return DbtRuns(spark, profiles_dir, tmp_path)


def demo_feed() -> list[dict[str, Any]]:
    """The demo feed with times, in the order of its arrival."""
    with gzip.open(PROJECT_FOLDER / "demo" / "rabbitmq_orders.jsonl.gz", "rt") as file:
        rows = [with_times(json.loads(line)) for line in file]
    return sorted(rows, key=lambda row: (row["received_at"], row["delivery_id"].encode()))


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: datetime.fromisoformat(row[name]) for name in ("received_at", "landed_at")}
    return {**row, **times}


def statuses(runs: DbtRuns, trigger_name: str) -> dict[tuple[str, str], int]:
    rows = runs.rows(
        "select status, rule_id, count(*) from {schema}.document_status "
        f"where trigger_name = '{trigger_name}' group by status, rule_id"
    )
    return {(status, rule): count for status, rule, count in rows}


def status_by_delivery(runs: DbtRuns) -> set[tuple[Any, ...]]:
    return set(
        runs.rows(
            "select delivery_id, trigger_name, status, rule_id, matched_delivery_id "
            "from {schema}.document_status"
        )
    )


def test_history_and_count_decide_the_demo_feed(runs: DbtRuns) -> None:
    runs.land("deliveries", demo_feed())
    runs.run("build", "--selector", "ci", clock=CLOCK)
    assert statuses(runs, "orders_by_history") == BY_HISTORY | EITHER_WAY
    assert statuses(runs, "orders_by_count") == BY_COUNT
    published = "select count(*) from {schema}.published_runs"
    ((before,),) = runs.rows(published)

    result = runs.decide(clock=CLOCK)
    assert runs.rows(published) == [(before,)], "a run with nothing new publishes nothing"
    assert result.success


@pytest.mark.parametrize("pieces", [2, 5])
def test_a_feed_cut_into_runs_is_decided_as_a_whole(runs: DbtRuns, pieces: int) -> None:
    feed = demo_feed()
    runs.run("seed")
    for piece in range(pieces):
        runs.land(
            "deliveries", feed[piece * len(feed) // pieces : (piece + 1) * len(feed) // pieces]
        )
        runs.decide(clock=CLOCK)
    assert statuses(runs, "orders_by_history") == BY_HISTORY | EITHER_WAY
    assert statuses(runs, "orders_by_count") == BY_COUNT
    assert runs.rows("select count(*) from {schema}.published_runs") == [(pieces,)]


def test_copies_wait_for_the_service_and_follow_what_it_reports(runs: DbtRuns) -> None:
    modes = {"reports_success": "serial", "began": "concurrent", "began_serially": "serial"}
    runs.seed(
        "triggers",
        [
            {
                "trigger_name": name,
                "processing_mode": mode,
                "detect_duplicates": True,
                "use_history": True,
            }
            for name, mode in modes.items()
        ],
    )
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": position,
                "condition_name": kind,
                "document_type": kind,
                "service": "load_order",
            }
            for name in modes
            for position, kind in enumerate(TYPES)
        ],
    )
    runs.run("seed")
    runs.land("deliveries", demo_feed())
    runs.decide(clock=CLOCK)
    for name in modes:
        assert statuses(runs, name) == {("NEW", "R07"): 3881} | EITHER_WAY
    waiting = runs.rows(
        "select trigger_name, count(*) from {schema}.waiting_deliveries group by trigger_name"
    )
    assert dict(waiting) == dict.fromkeys(modes, 130)

    for name in modes:
        runs.land("trigger_executions", executions(runs, name, "STARTED"))
    runs.land("trigger_executions", executions(runs, "reports_success", "SUCCESS"))
    runs.decide(clock=CLOCK)
    new = {("NEW", "R07"): 3881}
    assert statuses(runs, "reports_success") == BY_HISTORY | EITHER_WAY
    in_doubt = {("IN_DOUBT", "R10"): 130}
    assert statuses(runs, "began") == new | EITHER_WAY | in_doubt
    assert statuses(runs, "began_serially") == new | EITHER_WAY
    assert runs.rows(
        "select trigger_name, count(*) from {schema}.waiting_deliveries group by trigger_name"
    ) == [("began_serially", 130)]


def executions(runs: DbtRuns, trigger_name: str, event: str) -> list[Execution]:
    rows = runs.rows(
        "select delivery_id, service from {schema}.open_documents "
        f"where trigger_name = '{trigger_name}'"
    )
    assert rows
    return [
        Execution(
            f"{event} {trigger_name} {delivery_id}",
            delivery_id,
            trigger_name,
            service,
            1,
            event,
            CLOCK,
            CLOCK if event == "SUCCESS" else None,
            recorded_at=CLOCK,
        )
        for delivery_id, service in rows
    ]


def test_three_days_with_late_landings_are_decided_as_the_reference_model_decides_them(
    runs: DbtRuns,
) -> None:
    trigger = Trigger("orders_by_history", detect_duplicates=True, use_history=True)
    conditions = [
        Condition(trigger.trigger_name, position, kind, kind, None, None, None)
        for position, kind in enumerate(TYPES, start=1)
    ]
    runs.seed("triggers", [{**vars(trigger)}])
    runs.seed("trigger_conditions", [{**vars(condition), "filter": ""} for condition in conditions])
    runs.run("seed")
    simulator = Simulator([trigger], conditions, TRANSPORTS)
    seen: Counter[tuple[str, str]] = Counter()
    for number, piece in enumerate(landings(three_day_feed(), hours=24), start=1):
        rows = [with_times(row) for row in piece]
        expected = simulator.run(CLOCK, deliveries=[Delivery(**row) for row in rows])
        runs.land("deliveries", rows)
        runs.decide(clock=CLOCK)
        assert differences(runs, number, expected) == []
        seen.update((d.status, d.rule_id) for d in expected.decisions)
    assert statuses(runs, "orders_by_history") == dict(seen)
    assert seen[("IN_DOUBT", "R15")] > 0, "late landings meet removed history"
    assert (
        runs.rows("select count(*) from {schema}.document_history")[0][0] < 2 * seen["NEW", "R07"]
    )
