"""Ledgers that are lost or changed are noticed, made anew, kept small."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import LEDGERS, PROJECT_FOLDER, DbtRuns, failures
from faults import Failing
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run import maintenance
from dbt_exactly_once.run.door import ExactlyOnce
from dbt_exactly_once.run.operations import Operations

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
EXPIRED = "expires_at < timestamp '{bound}'"
HISTORY = (
    "select trigger_name, document_key, processing_status, delivery_id, key_hash, "
    "key_check, trigger_id, started_at, expires_at from {schema}.document_history order by all"
)


def two_triggers(spark: SparkSession, profiles_dir: Path, folder: Path) -> DbtRuns:
    """One trigger whose documents have a service, one whose documents have none."""
    found = DbtRuns(spark, profiles_dir, folder)
    detects = {"detect_duplicates": True, "use_history": True, "processing_mode": "concurrent"}
    found.seed(
        "triggers",
        [
            {"trigger_name": "ships", "execution_timeout_ms": 3_600_000, **detects},
            {"trigger_name": "records", **detects},
        ],
    )
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": 1,
                "condition_name": "all",
                "document_type": "order.created",
                "service": service,
            }
            for name, service in (("ships", "ship"), ("records", None))
        ],
    )
    found.run("seed")
    return found


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return two_triggers(spark, profiles_dir, tmp_path)


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A lake with a story, for tests that leave it as it was."""
    found = two_triggers(spark, profiles_dir, tmp_path_factory.mktemp("told"))
    tell_a_story(found)
    return found


# the variables of the project
SET = find_project(PROJECT_FOLDER).variables


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def delivery(name: str, minutes: int, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": at(minutes),
        "landed_at": at(minutes),
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": name,
        "redelivery_count": 0,
        "document": "{}",
        **columns,
    }


def execution(delivery_id: str, event: str, minutes: int) -> dict[str, Any]:
    return {
        "execution_id": f"{delivery_id} {event} {minutes}",
        "delivery_id": delivery_id,
        "trigger_name": "ships",
        "service": "ship",
        "attempt": 1,
        "event": event,
        "started_at": at(minutes),
        "ended_at": None if event == "STARTED" else at(minutes),
        "recorded_at": at(minutes),
    }


def tell_a_story(runs: DbtRuns) -> None:
    """Documents that have ended, are open, were interrupted and lost, and one that had waited."""
    runs.land(
        "deliveries",
        [
            delivery("ended", 0),
            delivery("copy", 1, uuid="ended"),
            delivery("open", 2),
            delivery("interrupted", 3),
            delivery("volatile", 4, guaranteed=False),
        ],
    )
    runs.decide(clock=at(5))
    told = [execution("ended", "STARTED", 6), execution("ended", "ERROR", 7)]
    told += [execution(name, "STARTED", 6) for name in ("interrupted", "volatile")]
    runs.land("trigger_executions", told)
    runs.decide(clock=at(8))
    runs.land("deliveries", [delivery("later", 70)])
    runs.decide(clock=at(80))


def lose(runs: DbtRuns, how: str) -> None:
    table = f"{runs.schema}.history_ledger"
    if how == "dropped":
        runs.spark.sql(f"drop table {table} purge")
    elif how == "emptied":
        runs.spark.sql(f"delete from {table}")
    else:
        first = runs.rows(
            "select snapshot_id from {schema}.history_ledger.snapshots order by committed_at"
        )[0][0]
        runs.spark.sql(f"call lake.system.set_current_snapshot('lake.{table}', {first})")


@pytest.mark.parametrize("how", ["dropped", "emptied", "restored"])
def test_history_that_is_lost_stops_the_run_and_is_made_anew(how: str, told: DbtRuns) -> None:
    before = told.rows(HISTORY)
    # two of each but of the interrupted, and none of those in ships whose service has not begun
    assert len(before) == 11
    lose(told, how)

    (why,) = failures(told.dbt("run", clock=at(81)))[:1]
    assert "history_ledger" in why
    assert "`dbt run-operation rebuild_history`" in why
    assert "reset_state" in why

    told.run("run-operation", operation="rebuild_history")
    assert told.rows(HISTORY) == before
    told.land("deliveries", [delivery(f"copy after {how}", 82, uuid="later")])
    told.decide(clock=at(83))
    assert told.rows(
        "select rule_id from {schema}.document_status "
        f"where delivery_id = 'copy after {how}' and trigger_name = 'records'"
    ) == [("R09",)]


def test_a_lost_status_is_not_made_up(told: DbtRuns) -> None:
    table = f"{told.schema}.document_status"
    ((kept,),) = told.rows(
        "select max_by(file, timestamp) from {schema}.document_status.metadata_log_entries"
    )
    told.spark.sql(f"drop table {table}")
    try:
        for command, operation in (("run", None), ("run-operation", "rebuild_history")):
            assert not told.dbt(command, operation=operation, clock=at(81)).success
            said = "\n".join(told.errors)
            assert "ledger document_status is missing" in said
            assert "rebuild_history" not in said
    finally:
        told.spark.sql(f"call lake.system.register_table('{table}', '{kept}')")


def test_starting_over_is_asked_for_and_decides_anew_what_has_landed(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery("d1", 0), delivery("copy", 1, uuid="d1")])
    runs.decide(clock=at(2))
    status = "select delivery_id, trigger_name, rule_id from {schema}.document_status order by all"
    before = runs.rows(status)
    assert not runs.dbt("run-operation", operation="reset_state").success
    assert "use --args '{really: true}' if you mean it" in "\n".join(runs.errors)
    assert runs.rows(status) == before

    runs.run("run-operation", operation="reset_state", arguments_of_operation={"really": True})
    assert not {row[1] for row in runs.rows("show tables in {schema}")} & set(LEDGERS)
    runs.land("deliveries", [delivery("d2", 3)])
    runs.decide(clock=at(4))
    assert set(before) < set(runs.rows(status))
    assert runs.rows("select run_number from {schema}.published_runs") == [(1,)]


def test_a_full_refresh_is_refused(told: DbtRuns) -> None:
    (why,) = failures(told.dbt("run", "--full-refresh"))[:1]
    assert "--full-refresh would recreate the ledgers" in why
    assert "reset_state" in why


@pytest.mark.parametrize("option", [("--empty",), ("--sample", "1 day")])
def test_a_run_that_would_read_a_part_of_what_has_landed_is_refused(
    told: DbtRuns, option: tuple[str, ...]
) -> None:
    numbers = "select max(run_number) from {schema}.published_runs"
    before = told.rows(numbers)
    told.land("deliveries", [delivery("unseen", 7)])
    (why,) = failures(told.dbt("run", *option))[:1]
    assert f"{option[0]} lets models read a part" in why
    assert "publish: false" in why
    assert told.rows(numbers) == before
    told.decide(clock=at(8))
    decided = "select distinct status from {schema}.document_status where delivery_id = 'unseen'"
    assert told.rows(decided) == [("NEW",)]


def test_a_missing_catalog_is_noticed(tmp_path: Path) -> None:
    metadata = tmp_path / "lake" / "warehouse" / "exactly_once" / "history_ledger" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "00001.metadata.json").write_text("{}")
    said = subprocess.run(
        [str(Path(sys.executable).parent / "dbt"), "run"],
        cwd=PROJECT_FOLDER,
        env={
            **os.environ,
            "EXACTLY_ONCE_LAKE": str(tmp_path / "lake"),
            "DBT_PROFILES_DIR": str(_profile(tmp_path)),
            "DBT_TARGET_PATH": str(tmp_path / "target"),
            "DBT_LOG_PATH": str(tmp_path / "logs"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode != 0
    assert f"the catalog {tmp_path}/lake/catalog.db is missing while" in said.stdout
    assert not (tmp_path / "lake" / "catalog.db").exists()


def _profile(folder: Path) -> Path:
    example = (PROJECT_FOLDER / "profiles.example.yml").read_text(encoding="utf-8")
    (folder / "profiles.yml").write_text(example, encoding="utf-8")
    return folder


def leave_orphan(lake: Path, runs: DbtRuns) -> Path:
    """The file that a run wrote which was killed days ago."""
    orphan = lake / "warehouse" / runs.schema / "history_ledger" / "data" / "killed.parquet"
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"half a file")
    os.utime(orphan, times=(time.time() - 3 * 86_400,) * 2)
    return orphan


def test_upkeep_leaves_few_files_and_snapshots_and_the_next_run_goes_on(
    runs: DbtRuns, lake: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tell_a_story(runs)
    orphan = leave_orphan(lake, runs)
    before = runs.rows(HISTORY)
    statuses = runs.rows("select * from {schema}.document_status order by all")
    files = "select count(*) from {schema}.history_ledger.files"
    assert runs.rows(files)[0][0] > 2

    kept_none = {"keep_snapshots_hours": 0}
    capfd.readouterr()
    runs.run("run-operation", operation="maintain", variables=kept_none, quiet=False)
    assert "history_ledger: 1 files of killed runs deleted" in capfd.readouterr().out
    assert not orphan.exists()
    assert runs.rows(HISTORY) == before
    assert runs.rows("select * from {schema}.document_status order by all") == statuses
    partitions = runs.rows("select count(*) from {schema}.history_ledger.partitions")
    assert runs.rows(files) == partitions
    for table in ("history_ledger", "document_status", "decisions"):
        assert runs.rows(f"select count(*) from {{schema}}.{table}.snapshots") == [(1,)], table

    # twice, and with nothing to do
    runs.run("run-operation", operation="maintain", variables=kept_none)
    runs.run("run", "--select", "+document_lifecycle,path:models/report")
    runs.run("test", "--selector", "audit")
    runs.land("deliveries", [delivery("copy of later", 82, uuid="later")])
    runs.decide(clock=at(83))
    assert runs.rows(
        "select rule_id from {schema}.document_status "
        "where delivery_id = 'copy of later' and trigger_name = 'records'"
    ) == [("R09",)]


def test_of_many_snapshots_of_a_day_upkeep_keeps_the_newest(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop of runs of seconds makes thousands in a day, and each statement reads their list."""
    monkeypatch.setattr(maintenance, "MOST_SNAPSHOTS", 3)
    for minute in range(5):
        runs.land("deliveries", [delivery(f"{minute}", minute)])
        runs.decide(clock=at(minute))
    # not consumed yet, and left by all that commit after it
    runs.land("deliveries", [delivery("late", 6)])
    there = f"{runs.landing}.deliveries"
    for _ in range(3):
        runs.spark.sql(f"insert into {there} select * from {there} where false")
    runs.run("run-operation", operation="maintain")
    counts = {
        table: runs.rows(f"select count(*) from {table}.snapshots")[0][0]
        for table in ("{schema}.document_status", "{schema}.published_runs", "{landing}.deliveries")
    }
    assert counts["{schema}.document_status"] == counts["{schema}.published_runs"] == 3
    assert counts["{landing}.deliveries"] > 3

    runs.decide(clock=at(7))
    assert runs.rows("select count(*) from {schema}.document_status")[0][0] == 2 * 6


def test_what_runs_read_has_few_manifests(runs: DbtRuns) -> None:
    """Also a table that an earlier version has made, as soon as upkeep has looked at it."""
    unset = "alter table {schema}.document_status unset tblproperties ('{key}')"
    merges = "commit.manifest.min-count-to-merge"
    runs.land("deliveries", [delivery("first", 0)])
    runs.decide(clock=at(0))
    runs.spark.sql(unset.format(schema=runs.schema, key=merges))
    for number in range(12):
        runs.land("deliveries", [delivery(f"d{number}", number)])
    assert runs.rows("select count(*) from {landing}.deliveries.files")[0][0] >= 12
    assert runs.rows("select count(*) from {landing}.deliveries.manifests")[0][0] <= 10
    runs.run("run-operation", operation="maintain")
    runs.decide(clock=at(20))
    properties = runs.rows("show tblproperties {schema}.document_status")
    assert (merges, "10") in {(row[0], row[1]) for row in properties}
    assert runs.rows("select count(*) from {landing}.deliveries.manifests")[0][0] <= 10
    # manifests of deliveries that no run had taken were merged too
    decided = "select count(*) from {schema}.document_status where trigger_name = 'records'"
    assert runs.rows(decided) == [(13,)]


def test_landed_deliveries_are_compacted_whether_runs_have_taken_them_or_not(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run looks for repeated ids in all of their files, and a loop lands one in each round."""
    decided = (
        "select delivery_id, status from {schema}.document_status where trigger_name = 'records' "
        "order by decided_at, delivery_id"
    )
    files = "select count(*) from {landing}.deliveries.files"
    for number in range(4):
        runs.land("deliveries", [delivery(f"taken {number}", number)])
    runs.decide(clock=at(5))
    for number in range(4):
        runs.land("deliveries", [delivery(f"new {number}", 6 + number)])
    runs.run("run-operation", operation="maintain")
    assert runs.rows(files) == [(1,)]
    runs.land("deliveries", [delivery("taken 0", 0), delivery("copy", 11, uuid="new 1")])
    runs.decide(clock=at(12))
    assert runs.rows(decided)[4:] == [
        ("copy", "DUPLICATE"),
        *((f"new {number}", "NEW") for number in range(4)),
    ]
    assert runs.rows("select delivery_id, reason from {schema}.rejected_deliveries") == [
        ("taken 0", "REPEATED")
    ]
    runs.run("test", "--select", "every_landed_delivery_is_decided_or_explained")

    # a table that cannot be rewritten now stops no upkeep
    for number in range(5):
        runs.land("deliveries", [delivery(f"later {number}", 13 + number)])
    ((place,),) = runs.rows(
        "select file_path from {landing}.deliveries.files "
        "where readable_metrics.delivery_id.upper_bound = 'later 4'"
    )
    kept = Path(place.removeprefix("file:"))
    kept.rename(kept.with_suffix(".kept"))
    capfd.readouterr()
    runs.run("run-operation", operation="maintain", quiet=False)
    assert "deliveries: not compacted" in capfd.readouterr().out
    kept.with_suffix(".kept").rename(kept)
    runs.decide(clock=at(20))
    assert len(runs.rows(decided)) == 14


def test_upkeep_forgets_whole_days_that_nothing_needs(runs: DbtRuns) -> None:
    runs.land(
        "deliveries",
        [
            delivery("old", -3 * 1440),
            delivery("old and open", -2 * 1440, document_type="order.created"),
            delivery("young", 0),
        ],
    )
    runs.decide(clock=at(1))
    runs.land("trigger_executions", [execution("old", "SUCCESS", 2)])
    runs.decide(clock=at(3))
    keep = {"keep_statuses_days": 1, "keep_landed_days": 1}
    runs.run("run-operation", operation="maintain", variables=keep)
    left = "select distinct delivery_id from {schema}.document_status order by 1"
    assert runs.rows(left) == [("old and open",), ("young",)]
    assert runs.rows("select delivery_id from {landing}.deliveries order by 1") == [
        ("old and open",),
        ("young",),
    ]
    runs.land("deliveries", [delivery("next", 4)])
    runs.decide(clock=at(5))
    assert ("next",) in runs.rows(left)
    runs.run("run", "--select", "+document_lifecycle,path:models/report")
    # what is missing was forgotten, and is found where it was lost otherwise
    runs.run("test", "--selector", "audit")
    runs.rows("delete from {schema}.document_status where delivery_id = 'next'")
    assert not runs.dbt("test", "--selector", "audit").success
    lost = ("a_decision_belongs", "history_holds_only_new")
    assert all(any(name in error for error in runs.errors) for name in lost), runs.errors


def test_upkeep_keeps_a_doubt_that_nobody_has_looked_at(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    """With its payload: it was acknowledged and never run."""
    days = 1440
    runs.land(
        "deliveries",
        [
            delivery("old", -3 * days, destination="records"),
            delivery("doubt", -2 * days, uuid=None, destination="records"),
            delivery("young", 0, destination="records"),
        ],
    )
    runs.decide(clock=at(1))
    keep = {"keep_statuses_days": 1, "keep_landed_days": 1}

    def kept() -> list[Any]:
        runs.run("run-operation", operation="maintain", variables=keep, quiet=False)
        statuses = runs.rows("select delivery_id from {schema}.document_status order by 1")
        landed = runs.rows("select delivery_id from {landing}.deliveries order by 1")
        assert statuses == landed
        return [name for (name,) in landed]

    assert kept() == ["doubt", "young"]
    day = at(-2 * days).date()
    assert f"deliveries: rows from {day} 00:00:00 on stay, since a document of that day is in" in (
        capfd.readouterr().out
    )
    looked = {"trigger_name": "records"}
    runs.run("run-operation", operation="mark_looked_at", arguments_of_operation=looked)
    assert kept() == ["young"]


def test_upkeep_keeps_what_was_decided_behind_a_doubt_that_nobody_has_looked_at(
    runs: DbtRuns,
) -> None:
    """One of two doubts of a day has come again; its second request finds how that ended."""
    runs.land(
        "deliveries",
        [
            delivery("other", -9 * 1440, uuid=None, destination="records"),
            delivery("doubt", -9 * 1440, uuid=None, destination="records"),
        ],
    )
    runs.decide(clock=at(-9 * 1440 + 1))
    ask = {"delivery_id": "doubt", "trigger_name": "records"}
    first = {"resubmission_id": "first", "requested_at": at(-6 * 1440), **ask}
    runs.land("resubmissions", [first])
    runs.decide(clock=at(-6 * 1440 + 1))
    runs.land("deliveries", [delivery("young", 0, destination="records")])
    runs.decide(clock=at(1))
    keep = {"keep_statuses_days": 1, "keep_journal_days": 1}
    runs.run("run-operation", operation="maintain", variables=keep)
    runs.land("resubmissions", [{**first, "resubmission_id": "second", "requested_at": at(2)}])
    runs.decide(clock=at(3))
    assert runs.rows(
        "select event from {schema}.journal_entries where reference_id = 'second'"
    ) == [("REFUSED",)]


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_upkeep_keeps_the_document_whose_success_has_settled_a_doubt_of_the_next_day(
    runs: DbtRuns, is_looked_at: bool
) -> None:
    midnight, days = 12 * 60, 1440
    first = delivery("first", midnight - 2, uuid="k", destination="ships")
    runs.land("deliveries", [first, delivery("other", midnight - 2, destination="ships")])
    runs.decide(clock=at(midnight - 1))
    begun = execution("first", "STARTED", midnight - 1)
    runs.land("trigger_executions", [begun, execution("other", "SUCCESS", midnight - 1)])
    runs.land("deliveries", [delivery("copy", midnight + 1, uuid="k", destination="ships")])
    runs.decide(clock=at(midnight + 2))
    statuses = "select delivery_id, status from {schema}.document_status order by 1"
    assert runs.rows(statuses) == [("copy", "IN_DOUBT"), ("first", "NEW"), ("other", "NEW")]
    runs.land("trigger_executions", [execution("first", "SUCCESS", midnight + 3)])
    end = midnight + (1 if is_looked_at else 5) * days
    runs.land("deliveries", [delivery("young", end, destination="records")])
    runs.decide(clock=at(end + 1))
    if is_looked_at:
        looked = {"trigger_name": "ships"}
        runs.run("run-operation", operation="mark_looked_at", arguments_of_operation=looked)
    runs.run("run-operation", operation="maintain", variables={"keep_statuses_days": 1})
    # what nobody asks for any more has gone
    assert [name for name, _ in runs.rows(statuses)] == ["copy", "first", "young"]
    request = {"delivery_id": "copy", "trigger_name": "ships", "requested_at": at(end + 2)}
    runs.land("resubmissions", [{"resubmission_id": "r", **request}])
    runs.decide(clock=at(end + 3))
    [(event, message)] = runs.rows(
        "select event, message from {schema}.journal_entries where reference_id = 'r'"
    )
    assert event == "REFUSED"
    assert message.startswith("its document has succeeded since as first: give force: true to")


# that of the second may be another host's, which is slow
@pytest.mark.parametrize("minutes", [0, 30])
def test_upkeep_keeps_a_doubt_until_it_is_resubmitted(runs: DbtRuns, minutes: int) -> None:
    runs.land(
        "deliveries",
        [
            delivery("doubt", -2 * 1440, uuid=None, destination="records"),
            delivery("young", 0, destination="records"),
        ],
    )
    runs.decide(clock=at(1))
    asked = {"delivery_id": "doubt", "trigger_name": "records"}
    runs.run("run-operation", operation="resubmit", arguments_of_operation=asked)
    runs.decide(clock=at(minutes))
    runs.run("run-operation", operation="maintain", variables={"keep_statuses_days": 1})
    assert ("doubt",) not in runs.rows("select delivery_id from {schema}.document_status")


def test_a_status_that_was_forgotten_keeps_its_history_when_that_is_rebuilt(runs: DbtRuns) -> None:
    """Its time to live is longer than statuses are kept."""
    runs.land(
        "deliveries",
        [
            delivery("old", -2 * 1440, destination="records"),
            delivery("young", 0, destination="records"),
        ],
    )
    variables = {"allowed_lateness_ms": 7 * 86_400_000}
    runs.decide(clock=at(1), variables=variables)
    keep = {**variables, "keep_statuses_days": 1}
    runs.run("run-operation", operation="maintain", variables=keep)
    assert runs.rows("select distinct delivery_id from {schema}.document_status") == [("young",)]
    before = runs.rows(HISTORY)
    runs.run("run-operation", operation="rebuild_history")
    assert runs.rows(HISTORY) == before


def test_a_wrong_retention_is_told_in_one_line(told: DbtRuns) -> None:
    told.dbt("run-operation", operation="maintain", variables={"keep_statuses_days": "a week"})
    assert "variable keep_statuses_days is 'a week': use a whole number" in "\n".join(told.errors)
    for name, value in (("keep_landed_days", 0.5), ("keep_snapshots_hours", None)):
        told.dbt("run-operation", operation="maintain", variables={name: value})
        assert f"variable {name} is {value}: use a" in "\n".join(told.errors)


def test_a_run_ends_with_upkeep_every_so_often(runs: DbtRuns, lake: Path) -> None:
    variables = {"maintain_every_runs": 2, "keep_snapshots_hours": 0}
    snapshots = "select count(*) from {schema}.document_status.snapshots"
    for number in (1, 2):
        orphan = leave_orphan(lake, runs)
        runs.land("deliveries", [delivery(f"d{number}", number)])
        runs.decide(clock=at(number), variables=variables)
        assert (runs.rows(snapshots)[0][0] == 1) == (number == 2)
        assert orphan.exists() == (number == 1)
    orphan = leave_orphan(lake, runs)
    runs.land("deliveries", [delivery("copy", 3, uuid="d1")])
    runs.decide(clock=at(3), variables=variables)
    assert runs.rows(
        "select rule_id from {schema}.document_status "
        "where delivery_id = 'copy' and trigger_name = 'records'"
    ) == [("R09",)]
    runs.land("deliveries", [delivery("d4", 4)])
    runs.decide(clock=at(4), variables=variables)
    assert runs.rows(snapshots) == [(1,)]
    # they are looked for once a day
    assert orphan.exists()


def test_upkeep_first_finishes_what_was_published(
    told: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.1: A run publishes its record, and the publication of the next ledger fails. The upkeep
    that follows the run finishes the publication before it compacts anything; where it cannot,
    it does nothing, and the next run finishes it.
    """
    run = ("run", "--select", "tag:transaction")
    kinds = "select kind from {schema}.published_runs order by publication_number"

    for number, finishing_fails in ((1, True), (2, False)):
        before = told.rows(kinds)
        published: list[str] = []

        def fails(change: str) -> bool:
            if change.startswith("fast_forward"):
                published.append(change)  # noqa: B023
            again = "set_current_snapshot" in change and finishing_fails  # noqa: B023
            return again or (len(published) == 2 and change is published[1])  # noqa: B023

        told.land("deliveries", [delivery(f"cut short {number}", 90 + number)])
        with monkeypatch.context() as patch:
            failing = Failing(patch, fails)
            result = told.dbt(*run, clock=at(95), variables={"maintain_every_runs": 1})
        assert not result.success
        assert "[SQLITE_BUSY]" in "\n".join(failures(result))
        assert published[0].endswith("published_runs")
        was_compacted = any("rewrite_data_files" in change for change in failing.changes)
        assert was_compacted != finishing_fails
        if finishing_fails:
            assert told.rows(kinds) == [*before, ("run",)]

        told.land("deliveries", [delivery(f"copy {number}", 93, uuid=f"cut short {number}")])
        told.decide(clock=at(95), variables={"maintain_every_runs": 0})
        assert told.rows(
            "select delivery_id, rule_id from {schema}.document_status "
            f"where delivery_id like '% {number}' and trigger_name = 'records' order by 1"
        ) == [(f"copy {number}", "R09"), (f"cut short {number}", "R07")]


def test_snapshots_that_expire_behind_an_upkeep_that_was_cut_short_stop_no_run(
    told: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18: Upkeep compacts and is cut off before its row in published_runs, again and again, then
    another program forgets all snapshots but the last of each ledger. The next run goes on.
    """
    never = {"maintain_every_runs": 0}

    def is_record(change: str) -> bool:
        return change.startswith("alter") and "published_runs create branch" in change

    for number in (1, 2):
        told.land("deliveries", [delivery(f"cut off {number}", 90 + number)])
        told.decide(clock=at(95), variables=never)
        before = told.rows(HISTORY)
        for row in range(1, number + 1):
            rows: list[str] = []

            def fails(change: str) -> bool:
                if is_record(change):
                    rows.append(change)  # noqa: B023
                return len(rows) == row  # noqa: B023

            with monkeypatch.context() as patch:
                failing = Failing(patch, fails)
                maintained = told.dbt("run-operation", operation="maintain")
            assert not maintained.success, "no row was left to be written"
            assert any("rewrite_" in change for change in failing.changes)
        for name in LEDGERS:
            told.spark.sql(
                f"call lake.system.expire_snapshots(table => '{told.schema}.{name}', "
                "older_than => timestamp '2100-01-01', retain_last => 1)"
            )
        assert told.rows(HISTORY) == before
        told.land("deliveries", [delivery(f"copy of {number}", 94, uuid=f"cut off {number}")])
        told.decide(clock=at(95), variables=never)
        assert told.rows(
            "select rule_id from {schema}.document_status "
            f"where delivery_id = 'copy of {number}' and trigger_name = 'records'"
        ) == [("R09",)]


def test_a_rebuild_that_fails_anywhere_leaves_the_refusal_or_the_whole_history(
    told: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.2: History was emptied, and rebuild_history fails at each change of a table that it makes
    in turn. Whatever comes next is refused as before, or finds the whole history.
    """
    before = told.rows(HISTORY)
    asked: list[str] = []
    rebuild = Operations.rebuild_history

    def listen(operations: Operations, entries: str) -> str:
        asked.append(entries)
        return rebuild(operations, entries)

    with monkeypatch.context() as patch:
        patch.setattr(Operations, "rebuild_history", listen)
        told.run("run-operation", operation="rebuild_history")
    (entries,) = asked
    graph = told.graph()
    exactly_once = ExactlyOnce(Engine(run_in(told.spark)))
    refused = whole = 0
    for number in range(1, 20):
        lose(told, "emptied")
        with monkeypatch.context() as patch:
            failing = Failing(patch, lambda _: len(failing.changes) == number)  # noqa: B023
            try:
                exactly_once.operations(graph, f"rebuild-{number}", SET.get).rebuild_history(
                    entries
                )
            except RuntimeError as error:
                assert "SQLITE_BUSY" in str(error)  # noqa: PT017
            else:
                # one whose branch could not be dropped has happened all the same
                if len(failing.changes) < number:
                    break
        try:
            # begins as a run does, and changes nothing
            exactly_once.operations(graph, f"next-{number}", SET.get).remove_expired_history(
                EXPIRED
            )
        except ExactlyOnceError as error:
            assert "history_ledger is not as run" in str(error)  # noqa: PT017
            assert "`dbt run-operation rebuild_history`" in str(error)  # noqa: PT017
            refused += 1
        else:
            assert told.rows(HISTORY) == before, failing.changes
            whole += 1
    assert told.rows(HISTORY) == before
    # create a branch, write history, write its record; then the record is published
    assert refused >= 4
    assert whole >= 2


def test_a_ledger_that_a_later_version_adds_is_made_and_a_lost_one_is_refused(
    told: DbtRuns,
) -> None:
    """18.23: A ledger that no publication has named was added by a later version of the project."""
    graph = dict(told.graph())
    graph["nodes"] = {
        **graph["nodes"],
        "model.exactly_once.later_ledger": {
            **graph["nodes"]["model.exactly_once.rejected_deliveries"],
            "name": "later_ledger",
            "alias": "later_ledger",
        },
    }
    table = f"{told.schema}.document_status"
    ((kept,),) = told.rows(
        "select max_by(file, timestamp) from {schema}.document_status.metadata_log_entries"
    )
    exactly_once = ExactlyOnce(Engine(run_in(told.spark)))
    exactly_once.operations(graph, "later-1", SET.get).remove_expired_history(EXPIRED)
    assert told.rows("select count(*) from {schema}.later_ledger") == [(0,)]

    told.spark.sql(f"drop table {told.schema}.later_ledger")
    told.spark.sql(f"drop table {table}")
    try:
        with pytest.raises(ExactlyOnceError, match="ledger document_status is missing"):
            exactly_once.operations(graph, "later-2", SET.get).remove_expired_history(EXPIRED)
    finally:
        told.spark.sql(f"call lake.system.register_table('{table}', '{kept}')")


def test_a_rebuild_prolongs_no_document_for_copies_that_wait_for_a_later_one(runs: DbtRuns) -> None:
    """The later one is interrupted: it and its copy are in doubt."""
    runs.land("deliveries", [delivery("first", 0, uuid="k")])
    runs.decide(clock=at(1))
    runs.land(
        "trigger_executions", [execution("first", event, 1) for event in ("STARTED", "SUCCESS")]
    )
    runs.decide(clock=at(2))
    # the time to live of the first has passed
    runs.land("deliveries", [delivery("later", 150, uuid="k")])
    runs.decide(clock=at(151))
    runs.land("deliveries", [delivery("copy", 155, uuid="k")])
    runs.decide(clock=at(156))
    before = runs.rows(HISTORY)
    runs.run("run-operation", operation="rebuild_history")
    assert runs.rows(HISTORY) == before

    runs.land("trigger_executions", [execution("later", "STARTED", 157)])
    runs.decide(clock=at(230))
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status where trigger_name = 'ships' "
        "and delivery_id not in ('first', 'later') order by 1"
    ) == [("copy", "IN_DOUBT"), ("later/recovery-1", "IN_DOUBT")]


def test_tests_pass_after_a_run_that_removes_what_it_adds(runs: DbtRuns) -> None:
    """And, of the audits, after the journal has forgotten who has left a delivery out."""
    gate = ("test", "--select", "tag:gate")
    days = 1440
    recorded = {"destination": "records"}
    runs.land(
        "deliveries",
        [
            delivery("of last week", -7 * days, **recorded),
            delivery("nobody's", 0, document_type="unknown"),
            delivery("now", 0, **recorded),
        ],
    )
    runs.run("build", "--selector", "hot_path", clock=at(1))
    assert runs.rows("select distinct delivery_id from {schema}.document_history") == [("now",)]
    runs.run(*gate, clock=at(2))

    runs.land("deliveries", [delivery("later", 3 * days, **recorded)])
    runs.decide(clock=at(3 * days))
    runs.run("run-operation", operation="maintain", variables={"keep_journal_days": 1})
    assert not runs.rows("select 1 from {schema}.journal_entries where event = 'UNROUTED'")
    runs.run("test", "--select", "every_landed_delivery_is_decided_or_explained")

    # a run that finds nothing new leaves empty tables
    runs.run("build", "--selector", "hot_path", clock=at(3 * days))
    runs.run(*gate, clock=at(3 * days))


def test_tests_pass_after_a_run_that_finds_nothing_new(runs: DbtRuns) -> None:
    """While a document is open and a copy waits for it."""
    runs.land("deliveries", [delivery("first", 0, uuid="k"), delivery("copy", 1, uuid="k")])
    runs.decide(clock=at(2))
    waiting = runs.rows("select delivery_id, reason from {schema}.waiting_deliveries")
    assert waiting == [("copy", "UNFINISHED_DOCUMENT")]
    published = runs.rows("select count(*) from {schema}.published_runs")
    runs.decide(clock=at(3))
    assert runs.rows("select count(*) from {schema}.published_runs") == published
    runs.run("test", "--select", "tag:gate", clock=at(4))


def test_a_document_whose_recovery_is_held_is_known_to_copies_after_its_time_to_live(
    runs: DbtRuns,
) -> None:
    """Whatever else comes in their run."""
    held = {"delivery_id": "d/recovery-1", "trigger_name": "ships"}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    runs.land("deliveries", [delivery("d", 0, uuid="k")])
    runs.decide(clock=at(1))
    runs.land("trigger_executions", [execution("d", "STARTED", 1)])
    runs.decide(clock=at(2))
    runs.decide(clock=at(63))
    runs.land("deliveries", [delivery("copy", 300, uuid="k")])
    runs.decide(clock=at(301))
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status "
        "where trigger_name = 'ships' order by 1"
    ) == [("copy", "IN_DOUBT"), ("d", "NEW")]
