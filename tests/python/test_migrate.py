"""A lake that an earlier version has made is carried over by `exactly-once migrate`, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.lake_version import LAKE_VERSION, VERSION_PROPERTY, check_lake
from dbt_exactly_once.cli import main
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run import migration
from dbt_exactly_once.run.migration import Step

NOW = datetime.now(timezone.utc).replace(microsecond=0)
REMEDY = "run `exactly-once migrate`"
VIEW = "document_history"
# the ledger's column stands in a state that the next run reads as it was published
STEP = Step(
    LAKE_VERSION,
    "trigger_states",
    "update {} set times_seen = 5 where times_seen is null",
    "triggers known before count as seen five times",
)


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A lake with a decided and a held delivery, whose tables have no version: as 0.1.0 left it."""
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("migrate"))
    found.seed("triggers", [{"trigger_name": "t", "detect_duplicates": True, "use_history": True}])
    found.seed(
        "trigger_conditions",
        [{"trigger_name": "t", "position": 1, "condition_name": "any", "document_type": "d"}],
    )
    found.add_udfs("services", "from python_udfs import service\nservice('s')(lambda work: None)\n")
    deliver(found, "d1", "d2")
    found.land(
        "delivery_holds",
        [
            {
                "hold_id": "h1",
                "delivery_id": "d2",
                "trigger_name": "t",
                "command": "HOLD",
                "issued_at": NOW,
            }
        ],
    )
    found.run("seed")
    found.decide()
    keep_entries_in_rows(found)
    found.spark.sql(
        f"alter table {found.schema}.published_runs unset tblproperties ('{VERSION_PROPERTY}')"
    )
    return found


def keep_entries_in_rows(runs: DbtRuns) -> None:
    """Let document_history be a ledger with a row for each entry, as versions 1 and 2 kept it."""
    view, ledger = f"{runs.schema}.document_history", f"{runs.schema}.history_ledger"
    rows = runs.rows(f"select * from {view}")
    columns = ", ".join(f"{c.name} {c.dataType.simpleString()}" for c in runs.table(VIEW).schema)
    runs.spark.sql(f"drop view {view}")
    runs.spark.sql(f"drop table {ledger} purge")
    runs.spark.sql(
        f"create table {view} ({columns}) using iceberg partitioned by (hours(expires_at)) "
        "tblproperties ('write.wap.enabled' = 'true')"
    )
    runs.spark.createDataFrame(rows, columns).writeTo(view).append()
    [(main,)] = runs.rows(f"select cast(snapshot_id as string) from {view}.refs")
    for column in ("ledger_starts", "ledger_publishes"):
        runs.spark.sql(
            f"update {runs.schema}.published_runs set {column} = map_concat(map_filter({column}, "
            f"(name, _) -> name != 'history_ledger'), map('document_history', '{main}'))"
        )


def deliver(runs: DbtRuns, *names: str) -> None:
    runs.land(
        "deliveries",
        [
            {
                "delivery_id": name,
                "received_at": NOW - timedelta(minutes=1),
                "landed_at": NOW,
                "transport": "RABBITMQ",
                "document_type": "d",
                "guaranteed": True,
                "uuid": name.partition("-")[0],
            }
            for name in names
        ],
    )


def describe_new_columns(runs: DbtRuns) -> None:
    """Let the project have a column more in a ledger and in a landed table."""
    models = runs.own("models")
    ledger = models / "record" / "trigger_states.sql"
    rows = "select * from final"
    text, _, end = ledger.read_text(encoding="utf-8").rpartition(rows)
    assert not end.strip()
    # as it was published
    seen = "(select max(times_seen) from {{ last_published('trigger_states') }})"
    ledger.write_text(f"{text}select *, {seen} + 1 as times_seen from final", encoding="utf-8")
    describe(models / "record" / "_record.yml", "models", "trigger_states", "times_seen")
    describe(models / "receive" / "sources.yml", "sources", "delivery_holds", "urgency")


def describe(file: Path, kind: str, table: str, column: str) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    found = content[kind][0]["tables"] if kind == "sources" else content[kind]
    columns = next(one["columns"] for one in found if one["name"] == table)
    columns.append({"name": column, "data_type": "int", "description": "A user's own column."})
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


def place_of(runs: DbtRuns) -> list[str]:
    return ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]


def said_of_refusal(runs: DbtRuns, *arguments: str, **options: Any) -> str:
    result = runs.dbt(*arguments, **options)
    assert not result.success
    return "\n".join([*runs.errors, *failures(result)])


def test_every_command_refuses_a_lake_of_another_version(
    runs: DbtRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """19, ledgers made by 0.1.0: each command names the remedy in one line and changes nothing."""
    number = runs.rows("select max(run_number) from {schema}.published_runs")
    commands: list[tuple[list[str], dict[str, Any]]] = [
        (["run", "--select", "tag:transaction"], {}),
        (["test", "--select", "a_delivery_is_decided_once"], {}),
        (["run-operation"], {"operation": "remove_expired_history"}),
        (
            ["run-operation"],
            {"operation": "suspend_trigger", "arguments_of_operation": {"trigger_name": "t"}},
        ),
        (
            ["run-operation"],
            {"operation": "explain", "arguments_of_operation": {"delivery_id": "d1"}},
        ),
    ]
    for arguments, options in commands:
        assert f"is of version 1, this package needs version {LAKE_VERSION}: {REMEDY}" in (
            said_of_refusal(runs, *arguments, **options)
        )
    file = tmp_path / "feed.jsonl"
    file.write_text("{}\n")
    for command in (["land", str(file)], ["worker"], ["report", "--output", str(tmp_path / "p")]):
        capsys.readouterr()
        assert main([*command, *place_of(runs)]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert line.endswith(REMEDY)

    record = f"{runs.schema}.published_runs"
    runs.spark.sql(f"alter table {record} set tblproperties ('{VERSION_PROPERTY}' = '99')")
    try:
        assert "is of version 99, this package knows version" in said_of_refusal(runs, "run")
        assert main(["migrate", *place_of(runs)]) == 1
        assert "upgrade the package" in capsys.readouterr().err
    finally:
        runs.spark.sql(f"alter table {record} unset tblproperties ('{VERSION_PROPERTY}')")
    assert runs.rows("select max(run_number) from {schema}.published_runs") == number
    assert runs.rows("select count(*) from {landing}.trigger_commands") == [(0,)]


def killed_at(monkeypatch: pytest.MonkeyPatch, statement: str, place: str) -> Callable[[], None]:
    """Let the connection fail at the first statement with a text; gives what mends it."""
    rows = Engine.rows

    def failing(self: Engine, sql: str) -> list[tuple[Any, ...]]:
        if statement in sql and place in sql:
            raise KeyboardInterrupt
        return rows(self, sql)

    monkeypatch.setattr(Engine, "rows", failing)
    return lambda: monkeypatch.setattr(Engine, "rows", rows)


def test_a_lake_of_version_1_goes_on_where_it_was(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """19, ledgers made by 0.1.0: columns are added, old rows filled, and a migration that was cut
    off is finished by starting it again.
    """
    entries = runs.rows("select * from {schema}.document_history order by all")
    assert len(entries) == 2
    describe_new_columns(runs)
    monkeypatch.setattr(migration, "STEPS", (STEP,))
    cuts = [
        ("alter table", "trigger_states add columns"),
        ("insert into", "trigger_states"),
        ("update", "trigger_states"),
        ("insert overwrite", "history_ledger"),
        ("drop table", "document_history"),
        ("set tblproperties", VERSION_PROPERTY),
    ]
    for statement, place in cuts:
        mend = killed_at(monkeypatch, statement, place)
        assert main(["migrate", *place_of(runs)]) == 1
        mend()
        with pytest.raises(ExactlyOnceError, match=REMEDY):
            check_lake(runs.spark, runs.schema)
    capsys.readouterr()
    assert main(["migrate", *place_of(runs)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"trigger_states: {STEP.purpose}",
        f"the lake is of version {LAKE_VERSION}",
    ]
    assert main(["migrate", *place_of(runs)]) == 0
    assert capsys.readouterr().out == f"the lake is of version {LAKE_VERSION} already\n"

    # a snapshot is read with the columns that it was made with
    [(snapshot,)] = runs.rows(
        "select snapshot_id from {landing}.delivery_holds.refs where name = 'main'"
    )
    assert runs.rows(
        "select hold_id, urgency from {landing}.delivery_holds version as of " + str(snapshot)
    ) == [("h1", None)]
    deliver(runs, "d1-again")
    # the states are written where something of a trigger has changed
    resumes = {
        "command_id": "c1",
        "trigger_name": "t",
        "command": "RESUME",
        "issued_at": datetime(2026, 5, 1, tzinfo=timezone.utc),
    }
    runs.land("trigger_commands", [resumes])
    runs.decide()
    assert runs.rows("select * from {schema}.document_history order by all") == entries
    assert runs.rows("select trigger_name, times_seen from {schema}.trigger_states") == [("t", 6)]
    assert set(runs.rows("select delivery_id, status from {schema}.document_status")) == {
        ("d1", "NEW"),
        ("d1-again", "DUPLICATE"),
    }
    assert runs.rows("select delivery_id from {schema}.waiting_deliveries") == [("d2",)]


def test_landed_tables_without_a_run_are_carried_over_as_well(
    spark: SparkSession,
    profiles_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """19, landed tables made by 0.1.0: where no run has been, their columns tell the version."""
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    table = f"{runs.landing}.trigger_executions"
    spark.sql(f"alter table {table} drop column message")
    file = tmp_path / "executions.jsonl"
    file.write_text('{"execution_id": "e1", "delivery_id": "d1", "trigger_name": "t"}\n')
    lacking = f"{table} lacks the column message, since an earlier version has made it: {REMEDY}"

    land = ["land", "--table", "trigger_executions", str(file), *place_of(runs)]
    assert main(land) == 1
    assert lacking in capsys.readouterr().err
    runs.run("seed")
    assert lacking in said_of_refusal(runs, "run", "--select", "tag:transaction")

    assert main(["migrate", *place_of(runs)]) == 0
    assert "trigger_executions: column message added" in capsys.readouterr().out
    assert main(land) == 0
    assert runs.rows("select execution_id, message from {landing}.trigger_executions") == [
        ("e1", None)
    ]
    runs.decide()
