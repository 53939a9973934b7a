"""A run is a transaction: one at a time, published whole or not at all, finished after a kill."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import LEDGERS, DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.session_engine import SessionEngine
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import ProcessIdentity

DEAD = "00000000-dead"


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.run("seed")
    return found


def delivery(number: int, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": f"d{number}",
        "received_at": datetime(2026, 5, 1, 12, 0, number, tzinfo=timezone.utc),
        "landed_at": datetime(2026, 5, 1, 12, 1, number, tzinfo=timezone.utc),
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": f"u{number}",
        "redelivery_count": 0,
        **columns,
    }


def mains(runs: DbtRuns) -> dict[str, str]:
    return {
        name: runs.rows(f"select snapshot_id from {{schema}}.{name}.refs where name = 'main'")[0][0]
        for name in LEDGERS
    }


def leftovers(runs: DbtRuns) -> list[str]:
    """Branches of runs, and the lock, that are still there."""
    found = [
        f"{name}: {row[0]}"
        for name in LEDGERS
        for row in runs.rows(f"select name from {{schema}}.{name}.refs where name != 'main'")
    ]
    return found + [row[1] for row in runs.rows("show tables in {schema}") if row[1] == "run_lock"]


def take_lock(runs: DbtRuns, process: ProcessIdentity, locked_at: datetime) -> None:
    properties = {**process.as_properties(), "run_id": DEAD, "locked_at": locked_at.isoformat()}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    runs.spark.sql(
        f"create table {runs.schema}.run_lock (run_id string) using iceberg "
        f"tblproperties ({listed})"
    )


def process(pid: int) -> ProcessIdentity:
    return replace(ProcessIdentity.own(), pid=str(pid))


def test_a_second_run_stops_and_says_whose_run_it_found(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    before = mains(runs)
    runs.land("deliveries", [delivery(2)])

    take_lock(runs, ProcessIdentity.own(), datetime.now(timezone.utc))
    (told,) = failures(runs.dbt("run"))[:1]
    assert f"run {DEAD} is at work since" in told
    assert f"process {os.getpid()} on" in told
    assert "abandon_run" in told
    assert mains(runs) == before

    runs.run("run-operation", operation="abandon_run", arguments_of_operation={"run_id": DEAD})
    runs.decide()
    assert runs.rows("select count(*) from {schema}.document_status") == [(4,)]
    assert leftovers(runs) == []


def test_a_run_takes_over_from_a_dead_process_and_from_one_that_is_too_old(runs: DbtRuns) -> None:
    runs.decide()
    runs.land("deliveries", [delivery(1)])
    take_lock(runs, process(pid=2**22 + 5), datetime.now(timezone.utc))
    runs.decide()
    assert runs.rows("select count(*) from {schema}.published_runs") == [(1,)]

    runs.land("deliveries", [delivery(2)])
    take_lock(runs, ProcessIdentity.own(), datetime(2026, 1, 1, tzinfo=timezone.utc))
    runs.decide()
    assert runs.rows("select count(*) from {schema}.published_runs") == [(2,)]
    assert leftovers(runs) == []


def test_a_ledger_that_is_missing_or_was_changed_stops_the_run(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    kept = runs.rows("select cast(snapshot_id as string) from {schema}.history_ledger.refs")[0][0]
    runs.spark.sql(f"delete from {runs.schema}.history_ledger")
    (told,) = failures(runs.dbt("run"))[:1]
    assert "history_ledger is not as run" in told
    assert f"set_current_snapshot('{runs.schema}.history_ledger', {kept})" in told
    runs.spark.sql(
        f"call lake.system.set_current_snapshot('lake.{runs.schema}.history_ledger', {kept})"
    )
    runs.decide()

    runs.spark.sql(f"drop table {runs.schema}.history_ledger")
    (told,) = failures(runs.dbt("run"))[:1]
    assert "ledger history_ledger is missing" in told
    assert "reset_state" in told


def test_a_publication_that_was_cut_short_is_finished_by_the_next_run(runs: DbtRuns) -> None:
    runs.decide()
    start = mains(runs)
    runs.land("deliveries", [delivery(1), delivery(2)])
    runs.decide()
    published = mains(runs)
    # as a kill right after the commit record leaves it
    for name in LEDGERS[:-1]:
        runs.spark.sql(
            f"call lake.system.set_current_snapshot('lake.{runs.schema}.{name}', {start[name]})"
        )
    assert runs.rows("select count(*) from {schema}.document_status") == [(0,)]
    runs.decide()
    assert mains(runs) == published
    assert runs.rows("select count(*) from {schema}.document_status") == [(4,)]


def test_a_run_killed_while_it_records_has_not_happened(runs: DbtRuns) -> None:
    runs.decide()
    before = mains(runs)
    runs.land("deliveries", [delivery(1), delivery(2, uuid="u1")])
    branches = "select 1 from {schema}.document_status.refs where name like 'run%'"
    runs.kill_when(runs.start("run"), lambda: bool(runs.rows(branches)))

    assert mains(runs) == before, "nothing of a killed run is seen"
    assert leftovers(runs) != []
    runs.decide()
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status "
        "where trigger_name = 'orders_by_history' order by 1"
    ) == [("d1", "NEW"), ("d2", "DUPLICATE")]
    assert leftovers(runs) == []


def test_a_lock_whose_answer_was_lost_is_the_runs_own(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog has made it and could not say so."""
    asked = SessionEngine.rows
    lost: list[str] = []

    def lose(engine: SessionEngine, sql: str) -> list[tuple[Any, ...]]:
        found = asked(engine, sql)
        if ".run_lock (" in sql and not lost:
            lost.append(sql)
            raise ExactlyOnceError("the answer was lost")
        return found

    monkeypatch.setattr(SessionEngine, "rows", lose)
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    assert len(lost) == 1
    assert runs.rows("select count(*) from {schema}.published_runs") == [(1,)]
    assert leftovers(runs) == []
