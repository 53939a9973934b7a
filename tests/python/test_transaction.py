"""A run is a transaction: one at a time, published whole or not at all, finished after a kill."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from dbt_runs import LEDGERS, DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.session_engine import SessionEngine
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import ProcessIdentity
from dbt_exactly_once.run.begin import RUN_ID_PROPERTY
from dbt_exactly_once.run.door import ExactlyOnce
from dbt_exactly_once.run.lock import RunLock
from dbt_exactly_once.run.publication import Publication, Publications

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


def test_a_publication_that_was_cut_short_is_finished_by_the_next_run(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
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
    # a test would compare what has moved with what has not
    audit = ("test", "--select", "a_decision_belongs_to_a_published_run")
    (told,) = failures(runs.dbt(*audit))
    assert "is being published, or was cut off in it: " in told
    finished = "had been cut off and is finished: "
    assert runs.dbt(*RUN, quiet=False).success
    told = capfd.readouterr().out
    assert told.count(finished) == 1
    names = told.partition(finished)[2].splitlines()[0].split(", ")
    # the run had no rows for the others
    moved = {name for name in LEDGERS[:-1] if start[name] != published[name]}
    assert {"document_status", "history_ledger"} <= moved
    assert sorted(names) == sorted(moved)
    assert mains(runs) == published
    runs.run(*audit)
    assert runs.dbt(*RUN, quiet=False).success
    assert finished not in capfd.readouterr().out
    assert runs.rows("select count(*) from {schema}.document_status") == [(4,)]


def test_a_run_keeps_its_triggers_if_they_cannot_have_changed(runs: DbtRuns) -> None:
    times = (datetime(2026, 5, 1, 13, minute, tzinfo=timezone.utc) for minute in count())

    def command(kind: str) -> None:
        at = next(times)
        row = {"command_id": f"c{at}", "command": kind, "issued_at": at, "issued_by": "somebody"}
        runs.land("trigger_commands", [{"trigger_name": "orders_by_history", **row}])

    def table_is_written() -> bool:
        """Whether the next run writes the rows, or only commits that they are its own too."""
        query = "select data_file.file_path from {schema}.triggers_this_run.entries"
        before = runs.rows(query)
        runs.decide()
        return runs.rows(query) != before

    def taking() -> set[str]:
        found = runs.rows(
            "select trigger_name from {schema}.triggers_this_run where takes_documents"
        )
        return {row[0] for row in found}

    for number in range(2):
        runs.land("deliveries", [delivery(number)])
        runs.decide()
    known = taking()
    assert "orders_by_history" in known
    runs.land("deliveries", [delivery(2)])
    assert not table_is_written()

    # a run that suspends it, the next one, which knows that from the ledger, and those after it
    command("SUSPEND")
    assert table_is_written()
    assert taking() == known - {"orders_by_history"}
    assert table_is_written()
    assert not table_is_written()
    assert taking() == known - {"orders_by_history"}
    command("RESUME")
    assert table_is_written()
    assert taking() == known
    assert table_is_written()
    assert not table_is_written()

    # a seed, a preview, a row of nobody's
    path = runs.folder / "seeds" / "triggers.csv"
    path.write_text(path.read_text().replace("orders_by_history,true", "orders_by_history,false"))
    runs.run("seed")
    assert table_is_written()
    assert taking() == known - {"orders_by_history"}
    assert table_is_written()
    runs.decide(
        variables={
            "publish": False,
            "preview_triggers": {"orders_by_history": {"enabled": "true"}},
        }
    )
    assert taking() == known
    assert table_is_written()
    assert taking() == known - {"orders_by_history"}
    assert not table_is_written()
    # as another session would
    runs.spark.conf.unset(RUN_ID_PROPERTY)
    runs.spark.sql(
        f"insert into {runs.schema}.triggers_this_run (trigger_name) values ('nobody''s')"
    )
    assert table_is_written()
    assert runs.rows(
        "select count(*) from {schema}.triggers_this_run where trigger_name = 'nobody''s'"
    ) == [(0,)]


def test_a_run_evaluates_the_invariants_that_could_find_something(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Cursor.execute
    skipped: set[str] = set()

    def listen(cursor: Cursor, sql: str, *values: Any) -> None:
        test = re.search(r'"node_id": "test\.exactly_once\.(\w+)', sql)
        if test and "from values (0, false, false)" in sql:
            skipped.add(test[1])
        execute(cursor, sql, *values)

    def skipped_by_the_next_run() -> set[str]:
        skipped.clear()
        monkeypatch.setattr(Cursor, "execute", listen)
        runs.run("build", "--selector", "hot_path")
        monkeypatch.undo()
        return set(skipped)

    about = {
        "undecided": {
            "a_suspended_delivery_waits",
            "a_chain_stops_at_its_first_undecided_delivery",
        },
        "copies": {
            "a_duplicate_names_a_delivery_of_its_key_and_trigger",
            "duplicates_and_in_doubt_leave_no_history",
        },
        "resolvers": {"a_resolver_is_asked_once_about_a_delivery"},
        "services": {
            "a_copy_that_waited_for_a_document_is_not_new_after_it",
            "a_document_is_open_until_its_service_has_ended",
            "an_open_document_has_a_service_and_no_completed_entry",
        },
        "returns": {"every_returning_delivery_is_taken"},
    }
    runs.land("deliveries", [delivery(1)])
    assert skipped_by_the_next_run() == set().union(*about.values())
    runs.land("deliveries", [delivery(2, uuid="u1")])
    assert skipped_by_the_next_run() == set().union(*about.values()) - about["copies"]


def test_invariants_open_no_file_that_an_earlier_run_has_added(runs: DbtRuns) -> None:
    """Nor one whose statistics do not tell runs apart, as in a file that maintenance has merged."""
    build = ("build", "--selector", "hot_path")
    runs.run(*build)
    appended = ("document_status", "journal_entries", "history_ledger")
    for ledger in appended:
        runs.spark.sql(
            f"alter table {runs.schema}.{ledger} "
            "set tblproperties ('write.metadata.metrics.default' = 'none')"
        )

    def land(number: int, day: int) -> None:
        received_at = datetime(2026, 5, day, 12, tzinfo=timezone.utc)
        unrouted = {"document_type": "nobody takes it"}
        runs.land(
            "deliveries",
            [
                delivery(number, received_at=received_at),
                delivery(number + 1, received_at=received_at, **unrouted),
            ],
        )

    for day in (1, 21):
        land(day, day)
        runs.run(*build)
        if day == 1:
            files = [
                runs.rows(f"select file_path from {{schema}}.{ledger}.files") for ledger in appended
            ]
            assert all(files)
    for (path,) in chain(*files):
        Path(path.removeprefix("file:")).unlink()

    land(31, day=21)
    runs.run(*build)
    assert runs.rows("select max(run_number) from {schema}.published_runs") == [(3,)]


def test_a_run_reads_the_landed_rows_of_earlier_runs_only_if_a_delivery_of_them_returns(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Cursor.execute
    statements: list[str] = []

    def listen(cursor: Cursor, sql: str, *values: Any) -> None:
        if '"model.exactly_once.new_documents"' in sql and "insert into" in sql:
            statements.append(sql)
        execute(cursor, sql, *values)

    def next_run(number: int, command: str | None = None, **columns: Any) -> bool:
        """Whether it reads what earlier runs have read, to get the documents of its deliveries."""
        at = datetime(2026, 5, 1, 13, number, tzinfo=timezone.utc)
        if command is not None:
            row = {"command": command, "issued_at": at, "issued_by": "somebody"}
            name = {"command_id": f"c{number}", "trigger_name": "orders_by_history"}
            runs.land("trigger_commands", [{**name, **row}])
        document = f'{{"number": {number}}}'
        runs.land("deliveries", [delivery(number, document=document, **columns)])
        statements.clear()
        monkeypatch.setattr(Cursor, "execute", listen)
        runs.run("run", "--select", "tag:transaction", "new_documents", "--no-write-json")
        monkeypatch.undo()
        (statement,) = statements
        return f"{runs.landing}.deliveries version as of" in statement

    next_run(1)
    assert not next_run(2)
    assert not next_run(3, "SUSPEND")
    assert next_run(4, "RESUME")
    assert not next_run(5)
    # a run without documents to process is not missed
    next_run(6, uuid="u5", destination="orders_by_history")
    assert not next_run(7)
    # and one that was missed is made up for
    runs.land("deliveries", [delivery(8, document='{"number": 8}')])
    runs.decide()
    assert next_run(9)
    assert runs.rows(
        "select delivery_id, run_number, document from {schema}.new_documents "
        "where trigger_name = 'orders_by_history' order by received_at"
    ) == [(f"d{n}", 4 if n == 3 else n, f'{{"number": {n}}}') for n in (1, 2, 3, 4, 5, 7, 8, 9)]


def test_a_run_writes_the_ledgers_that_it_has_rows_for_and_no_others(runs: DbtRuns) -> None:
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    decided = {"document_status", "history_ledger", "published_runs"}
    at_ten = datetime(2026, 5, 1, 10, tzinfo=timezone.utc)
    suspends = {
        "command_id": "c1",
        "trigger_name": "orders_by_history",
        "command": "SUSPEND",
        "issued_at": at_ten,
        "issued_by": "somebody",
    }
    landings: list[tuple[str, dict[str, Any], set[str]]] = [
        ("deliveries", delivery(2), decided),
        ("deliveries", delivery(3, uuid="u1"), decided - {"history_ledger"}),
        ("deliveries", delivery(4, transport="PIGEON"), {"rejected_deliveries", "published_runs"}),
        (
            "deliveries",
            delivery(5, document_type="nobody's"),
            {"journal_entries", "published_runs"},
        ),
        (
            "trigger_commands",
            suspends,
            {"trigger_states", "journal_entries", "published_runs"},
        ),
        # a day and an hour later the first entries have expired for good
        (
            "deliveries",
            delivery(6, received_at=datetime(2026, 5, 2, 16, tzinfo=timezone.utc)),
            {*decided, "trigger_states", "journal_entries", "waiting_deliveries"},
        ),
    ]
    before = mains(runs)
    for table, row, written in landings:
        runs.land(table, [row])
        runs.decide()
        after = mains(runs)
        moved = {name for name in LEDGERS if before[name] != after[name]}
        assert moved == written, row
        before = after
    assert runs.rows("select event from {schema}.journal_entries order by 1") == [
        ("REMOVED",),
        ("SUSPENDED",),
        ("UNROUTED",),
    ]


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


# ---- what others do while a run publishes: one lake, in which each test lands its own deliveries

RUN = ("run", "--select", "tag:transaction")
numbers = count(10)


@pytest.fixture(scope="module")
def lake_of_runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("publication"))
    found.run("seed")
    found.run(*RUN)
    return found


@pytest.fixture
def landed(lake_of_runs: DbtRuns) -> Iterator[DbtRuns]:
    """A lake in which a delivery has landed, and behind which nothing is left."""
    number = next(numbers)
    lake_of_runs.land("deliveries", [delivery(number)])
    yield lake_of_runs
    # whatever has happened, the delivery and its copy are decided, each once
    copy = {"delivery_id": f"d{number}-copy", "uuid": f"u{number}"}
    lake_of_runs.land("deliveries", [delivery(number, **copy)])
    lake_of_runs.run(*RUN)
    assert statuses(lake_of_runs, number) == [
        (f"d{number}", "NEW"),
        (f"d{number}-copy", "DUPLICATE"),
    ]
    assert leftovers(lake_of_runs) == []
    runs = lake_of_runs.rows("select run_number from {schema}.published_runs order by 1")
    assert runs == [(number + 1,) for number in range(len(runs))]


def statuses(runs: DbtRuns, number: int | None = None) -> list[tuple[str, str]]:
    """What was decided of a delivery and its copy, by default of those that landed last."""
    key = f"u{number or newest(runs)}"
    return runs.rows(
        "select delivery_id, status from {schema}.document_status "
        f"where trigger_name = 'orders_by_history' and document_key = '{key}' order by 1"
    )


def newest(runs: DbtRuns) -> int:
    """The number of the delivery that has landed last."""
    return int(runs.rows("select max(int(substr(uuid, 2))) from {landing}.deliveries")[0][0])


@pytest.mark.parametrize("table", ["published_runs", "document_status"])
def test_a_commit_whose_answer_was_lost_publishes(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    fast_forward = SessionEngine.fast_forward

    def lose(engine: SessionEngine, relation: str, branch: str) -> None:
        fast_forward(engine, relation, branch)
        if relation.endswith(f".{table}"):
            raise RuntimeError("504 Gateway Timeout")

    monkeypatch.setattr(SessionEngine, "fast_forward", lose)
    landed.run(*RUN)
    monkeypatch.undo()
    assert [status for _, status in statuses(landed)] == ["NEW"]
    assert leftovers(landed) == []


def test_a_run_that_did_not_learn_that_it_was_published_is_finished(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its branches stay for the next command, and so do their snapshots."""

    def stop(publications: Publications, name: str, branch: str, snapshot: str) -> None:
        publications._engine.fast_forward(f"{landed.schema}.{name}", branch)
        raise RuntimeError("the catalog does not answer any more")

    monkeypatch.setattr(Publications, "_move_main", stop)
    assert not landed.dbt(*RUN, quiet=False).success
    monkeypatch.undo()
    said = capfd.readouterr().out
    assert "was published, but this command was stopped before it knew" in said
    assert "nothing was published" not in said
    # another program forgets what neither branch nor tag names
    for name in LEDGERS:
        landed.spark.sql(
            f"call lake.system.expire_snapshots('{landed.schema}.{name}', "
            "timestamp '2999-01-01 00:00:00', 1)"
        )


def test_a_commit_of_a_dead_run_that_comes_late_publishes_nothing(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was on its way to published_runs while the next run took over."""
    dead: list[Publication] = []

    def die(_: Publications, publication: Publication) -> None:
        dead.append(publication)
        raise RuntimeError("killed")

    monkeypatch.setattr(Publications, "publish", die)
    monkeypatch.setattr(Publications, "forget", lambda *_: True)
    assert not landed.dbt(*RUN).success
    monkeypatch.undo()
    assert any(dead[0].branch in left for left in leftovers(landed))

    last = Publications.last
    refused: list[str] = []

    def come_late(publications: Publications) -> Any:
        found = last(publications)
        if not refused:
            record = publications._tables.record.relation
            with pytest.raises(Exception, match=r"(?i)branch|ref") as error:
                publications._engine.fast_forward(record, dead[0].branch)
            refused.append(str(error.value))
        return found

    monkeypatch.setattr(Publications, "last", come_late)
    landed.run(*RUN)
    monkeypatch.undo()
    assert refused


@pytest.mark.parametrize("ledger", ["document_status", "published_runs"])
def test_a_run_whose_branch_was_dropped_publishes_nothing(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch, ledger: str
) -> None:
    """By a run that slept while this one took over, and woke before it had looked for the lock."""
    before = mains(landed)
    publish = Publications.publish

    def drop_first(publications: Publications, publication: Publication) -> None:
        publications._engine.drop_branch(f"{landed.schema}.{ledger}", publication.branch)
        publish(publications, publication)

    monkeypatch.setattr(Publications, "publish", drop_first)
    (told,) = failures(landed.dbt(*RUN))[:1]
    monkeypatch.undo()
    assert f"lost its ground in {ledger} to another run and publishes nothing" in told
    assert mains(landed) == before


def test_a_run_that_has_lost_its_lock_drops_no_branches(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be those of the run that holds it now."""
    relation = f"{landed.schema}.document_status"
    landed.spark.sql(f"alter table {relation} create branch run_of_another")
    monkeypatch.setattr(RunLock, "holder", lambda _: "another")
    (told,) = failures(landed.dbt(*RUN))[:1]
    monkeypatch.undo()
    landed.spark.sql(f"drop table {landed.schema}.run_lock")
    assert "has lost its lock to another run before it finished" in told
    assert leftovers(landed) == ["document_status: run_of_another"]


def test_what_a_sleeping_run_has_written_to_the_tables_of_a_run_is_not_published(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = ExactlyOnce.publish

    def replace_first(door: ExactlyOnce, *arguments: Any) -> None:
        engine: Engine = door._engine
        own = engine.setting(RUN_ID_PROPERTY)
        engine.set(RUN_ID_PROPERTY, "sleeper")
        table = f"{landed.schema}.opened_this_run"
        landed.spark.sql(f"create or replace table {table} using iceberg as select * from {table}")
        engine.set(RUN_ID_PROPERTY, str(own))
        publish(door, *arguments)

    monkeypatch.setattr(ExactlyOnce, "publish", replace_first)
    (told,) = failures(landed.dbt(*RUN))[:1]
    monkeypatch.undo()
    assert f"{landed.schema}.opened_this_run was written by run sleeper while run" in told
    assert statuses(landed) == []


def test_what_a_sleeping_run_has_written_is_not_kept_in_memory(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is refused leaves no copy of it to the next run of the session."""
    table = f"{landed.schema}.triggers_this_run"
    keep = ExactlyOnce.keep_in_memory

    def replace_first(door: ExactlyOnce, model: str, relation: Any) -> None:
        if model == "triggers_this_run":
            engine: Engine = door._engine
            own = engine.setting(RUN_ID_PROPERTY)
            engine.set(RUN_ID_PROPERTY, "sleeper")
            landed.spark.sql(
                f"create or replace table {table} using iceberg "
                "tblproperties ('rows-follow-from' = 'what it has read') as "
                f"select * except (detect_duplicates), false as detect_duplicates from {table}"
            )
            engine.set(RUN_ID_PROPERTY, str(own))
        keep(door, model, relation)

    first, copy = (next(numbers) for _ in range(2))
    for _ in range(2):
        landed.decide()
    landed.run("seed", "--full-refresh")
    landed.land("deliveries", [delivery(first)])
    monkeypatch.setattr(ExactlyOnce, "keep_in_memory", replace_first)
    (told,) = failures(landed.dbt(*RUN))[:1]
    monkeypatch.undo()
    assert f"{table} was written by run sleeper while run" in told
    landed.decide()
    landed.land("deliveries", [delivery(copy, uuid=f"u{first}")])
    landed.decide()
    assert landed.rows(
        "select delivery_id, status from {schema}.document_status "
        f"where delivery_id in ('d{first}', 'd{copy}') and trigger_name = 'orders_by_history' "
        "order by received_at"
    ) == [(f"d{first}", "NEW"), (f"d{copy}", "DUPLICATE")]


def test_a_run_that_has_lost_its_lock_recreates_no_view_of_its_successor(
    landed: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ExactlyOnce.begin
    view = "show create table {schema}.stg_deliveries"
    before = landed.rows(view)

    def sleep(door: ExactlyOnce, *arguments: Any) -> Any:
        run = begin(door, *arguments)
        landed.spark.sql(f"alter table {landed.schema}.run_lock rename to {landed.schema}.buried")
        return run

    monkeypatch.setattr(ExactlyOnce, "begin", sleep)
    told = failures(landed.dbt(*RUN))
    monkeypatch.undo()
    assert any("before it wrote stg_deliveries" in text for text in told)
    assert landed.rows(view) == before
