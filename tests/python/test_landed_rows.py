"""What has landed is decided once, however the landed tables were changed by others."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession
from test_upkeep import at, delivery, execution, two_triggers

from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.run import end

DAY = 1440
RECORDED = (
    "select delivery_id, status from {schema}.document_status where trigger_name = 'records' "
    "order by decided_at, delivery_id"
)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return two_triggers(spark, profiles_dir, tmp_path)


def build(runs: DbtRuns, minutes: int, **options: Any) -> None:
    result = runs.dbt("build", "--selector", "hot_path", clock=at(minutes), **options)
    assert result.success, failures(result)


def tag_of(runs: DbtRuns, table: str = "deliveries") -> list[tuple[Any, ...]]:
    return runs.rows(
        f"select name, snapshot_id from {{landing}}.{table}.refs where type = 'TAG' order by 1"
    )


def current(runs: DbtRuns) -> int:
    return runs.rows("select snapshot_id from {landing}.deliveries.refs where name = 'main'")[0][0]


def test_of_one_id_in_one_landing_the_first_row_rules(runs: DbtRuns) -> None:
    """Also where it has no landed_at."""
    first = delivery("a", 0, uuid="first", landed_at=None)
    runs.land("deliveries", [first, delivery("a", 0, uuid="second")])
    runs.decide(clock=at(2))
    keys = runs.rows("select distinct document_key from {schema}.document_status")
    assert keys == [("first",)]
    assert runs.rows("select reason from {schema}.rejected_deliveries") == [("CONFLICTING",)]


def test_the_row_that_rules_is_the_same_to_runs_land_and_explain(
    runs: DbtRuns, tmp_path: Path
) -> None:
    """Whichever of the two has no landed_at."""
    first = [delivery("a", 0, landed_at=None), delivery("b", 0)]
    runs.land("deliveries", first)
    runs.decide(clock=at(2))
    other = {"transport": "SQS"}
    runs.land("deliveries", [delivery("a", 0, **other), delivery("b", 0, landed_at=None, **other)])
    runs.decide(clock=at(4))
    rejected = "select delivery_id, reason from {schema}.rejected_deliveries order by 1"
    assert runs.rows(rejected) == [("a", "CONFLICTING"), ("b", "CONFLICTING")]

    runs.run("run", "--select", "+explanations", "--exclude", "tag:transaction", clock=at(5))
    explained = runs.rows("select delivery_id, explanation from {schema}.explanations")
    assert {name for name, _ in explained} == {"a", "b"}
    assert [text for _, text in explained if "RABBITMQ" not in text or "SQS" in text] == []

    file = tmp_path / "again.jsonl"
    again = [{**row, "received_at": row["received_at"].isoformat()} for row in first]
    columns = [{key: row[key] for key in row if key != "landed_at"} for row in again]
    file.write_text("".join(json.dumps(row) + "\n" for row in columns))
    landing = land(runs.spark, find_project(runs.folder), [file])
    assert landing.reasons == {"REPEATED": 2}


def test_a_later_row_of_an_id_changes_neither_what_waits_nor_what_services_get(
    runs: DbtRuns,
) -> None:
    """Whatever its landed_at says: one clock may be behind another, or not be told."""
    times = {"behind": (at(1), at(0)), "untold": (None, at(3)), "neither": (None, None)}
    held = [{"delivery_id": name, "trigger_name": "records"} for name in times]
    for one in held:
        runs.run("run-operation", operation="hold_delivery", arguments_of_operation=one)
    for name, (landed_at, _) in times.items():
        first = {"uuid": f"first {name}", "document": "first"}
        runs.land("deliveries", [delivery(name, 0, landed_at=landed_at, **first)])
    build(runs, 2)
    documents = (
        "select distinct delivery_id, document from {{schema}}.{} where service = 'ship' order by 1"
    )
    given = [(name, "first") for name in sorted(times)]
    for name, (_, landed_at) in times.items():
        second = {"uuid": f"second {name}", "document": "second"}
        runs.land("deliveries", [delivery(name, 0, landed_at=landed_at, **second)])
    for view in ("dispatched_documents", "service_work", "new_documents"):
        assert runs.rows(documents.format(view)) == given, view

    for one in held:
        runs.run("run-operation", operation="release_delivery", arguments_of_operation=one)
    build(runs, 4)
    assert runs.rows(
        "select delivery_id, document_key, document_hash = sha2('first', 256) "
        "from {schema}.document_status where trigger_name = 'records' order by 1"
    ) == [(name, f"first {name}", True) for name in sorted(times)]
    rejected = "select delivery_id, reason from {schema}.rejected_deliveries order by 1"
    assert runs.rows(rejected) == [(name, "CONFLICTING") for name in sorted(times)]
    for view in ("dispatched_documents", "service_work", "new_documents"):
        assert runs.rows(documents.format(view)) == given, view


def test_an_id_that_lands_again_is_noticed_whatever_it_looks_like(runs: DbtRuns) -> None:
    """Files are left out by the range of the ids of a run, where these are plain."""
    known = ["10", "9", "m", "n", "${env:HOME}", "x'; --", "\\", "\u00fc", "\U0001f600", "\ue000"]
    for name in known:
        runs.land("deliveries", [delivery(name, 0)])
    runs.decide(clock=at(1))
    again = [["9", "10", "5"], ["m"], ["n", "${env:HOME}", "x'; --"], ["\\"], known[-3:]]
    for minute, names in enumerate(again, start=2):
        runs.land("deliveries", [delivery(name, 0) for name in names])
        runs.decide(clock=at(minute))
    repeated = runs.rows(
        "select delivery_id from {schema}.rejected_deliveries where reason = 'REPEATED'"
    )
    assert sorted(row[0] for row in repeated) == sorted(known)
    assert {row[0] for row in runs.rows(RECORDED)} == {"5", *known}


def test_rows_are_decided_once_whatever_commits_brought_them(runs: DbtRuns) -> None:
    """18.5, 18.13: an overwriting commit, expired snapshots, a rollback and a table that was
    dropped and landed again lose no delivery, double none, and stop no run.
    """
    runs.land("deliveries", [delivery("a", 0), delivery("b", 1)])
    runs.decide(clock=at(2))

    # a commit of kind overwrite: it changes a consumed row and brings a new one
    runs.land("deliveries", [delivery("c", 3)])
    landed = f"{runs.landing}.deliveries"
    runs.spark.sql(
        f"merge into {landed} as old using (select 'b' as id union all select 'd') as new "
        "on old.delivery_id = new.id when matched then update set errors_to = 'desk' "
        "when not matched then insert (delivery_id, received_at, landed_at, transport, "
        "document_type, guaranteed, uuid, redelivery_count, document) values ('d', "
        "timestamp '2026-05-01 12:03:00', timestamp '2026-05-01 12:03:00', 'RABBITMQ', "
        "'order.created', true, 'd', 0, '{}')"
    )
    build(runs, 4)
    assert runs.rows(RECORDED) == [("a", "NEW"), ("b", "NEW"), ("c", "NEW"), ("d", "NEW")]
    assert runs.rows("select delivery_id, reason from {schema}.rejected_deliveries") == [
        ("b", "CONFLICTING")
    ]

    # upkeep forgets snapshots of landings that no run has consumed
    consumed = current(runs)
    for name in ("e", "f", "g"):
        runs.land("deliveries", [delivery(name, 5)])
    variables = {"keep_snapshots_hours": 0}
    runs.run("run-operation", operation="maintain", variables=variables)
    runs.land("deliveries", [delivery("h", 6), delivery("copy of a", 6, uuid="a")])
    build(runs, 7)
    assert runs.rows(RECORDED)[4:] == [
        ("copy of a", "DUPLICATE"),
        *((name, "NEW") for name in "efgh"),
    ]

    # the table is set back behind what was consumed
    runs.spark.sql(f"call lake.system.set_current_snapshot('lake.{landed}', {consumed})")
    runs.land("deliveries", [delivery("i", 8)])
    build(runs, 9)
    assert runs.rows(RECORDED)[9:] == [("i", "NEW")]

    # the table is dropped and what was in it lands again, with something new
    ddl = runs.rows("show create table {landing}.deliveries")[0][0]
    runs.spark.sql(f"drop table {landed} purge")
    runs.spark.sql(ddl.split("TBLPROPERTIES")[0].split("LOCATION")[0])
    runs.land("deliveries", [delivery(name, 0) for name in "abcdefghi"])
    runs.land("deliveries", [delivery("j", 10)])
    build(runs, 11)
    assert runs.rows(RECORDED)[10:] == [("j", "NEW")]
    runs.land("deliveries", [delivery("k", 12), delivery("a", 0)])
    build(runs, 13)
    assert runs.rows(RECORDED)[11:] == [("k", "NEW")]


def test_what_was_consumed_is_tagged_and_event_time_follows_the_rows(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """18.13: the tag that keeps the consumed snapshot is named for the schema of the ledgers, and a
    run that is killed before it sets the tag is made up for by the next command.

    18.22: a delivery that moves event time far beyond all others is named; when its row is removed,
    event time follows. No time is written that Python cannot read.
    """
    runs.land("deliveries", [delivery("a", 0)])
    runs.decide(clock=at(1))
    first = current(runs)
    assert tag_of(runs) == [(f"exactly_once_consumed_{runs.schema}", first)]

    runs.land("deliveries", [delivery("b", 2)])
    with monkeypatch.context() as patch:
        patch.setattr(end, "keep_consumed", _killed)
        assert not runs.dbt("run", "--select", "tag:transaction", clock=at(3)).success
    assert tag_of(runs) == [(f"exactly_once_consumed_{runs.schema}", first)]
    assert runs.rows("select count(*) from {schema}.published_runs") == [(2,)]
    second = current(runs)
    runs.land("deliveries", [delivery("c", 4)])
    runs.run("run-operation", operation="maintain", variables={"keep_snapshots_hours": 0})
    assert tag_of(runs) == [(f"exactly_once_consumed_{runs.schema}", second)]
    runs.decide(clock=at(5))
    assert [row[0] for row in runs.rows(RECORDED)] == ["a", "b", "c"]

    poison = datetime(9999, 12, 31, 23, 30, tzinfo=timezone.utc)
    runs.land("deliveries", [delivery("p", 0, received_at=poison), delivery("d", 6)])
    capfd.readouterr()
    runs.decide(clock=at(3 * DAY), quiet=False)
    assert (
        "warning, delivery p moves event time from 2026-05-01 12:06:00 to 2026-05-04 12:00:00, "
        "beyond all others: if its received_at, 9999-12-31 23:30:00, is wrong, delete from "
    ) in capfd.readouterr().out
    assert max(row[0] for row in runs.rows("select expires_at from {schema}.document_history")) == (
        datetime.max
    )
    runs.spark.sql(f"delete from {runs.landing}.deliveries where delivery_id = 'p'")
    runs.land("deliveries", [delivery("e", 7)])
    runs.decide(clock=at(3 * DAY + 1), quiet=False)
    assert "warning, delivery" not in capfd.readouterr().out
    assert runs.rows("select max_by(event_time, run_number) from {schema}.published_runs") == [
        (at(7).replace(tzinfo=None),)
    ]


def _killed(*_: Any) -> None:
    raise RuntimeError("killed")


THEN = -3 * DAY
RAW = {
    "delivery_id": "r",
    "received_at": "2026-04-28T12:00:00Z",
    "transport": "RABBITMQ",
    "document_type": "order.created",
    "guaranteed": True,
    "redelivery_count": 2.5,
}


def land_late_in_name(runs: DbtRuns, table: str, row: dict[str, Any], filler: str) -> None:
    """Land a row in a file whose name comes behind those of later commits."""
    schema = runs.spark.table(f"{runs.landing}.{table}").schema
    first = dict.fromkeys(schema.names) | {schema.names[0]: filler}
    rows = [tuple(r.get(name) for name in schema.names) for r in (first, row)]
    frame = runs.spark.createDataFrame(runs.spark.sparkContext.parallelize(rows, 2), schema)
    frame.writeTo(f"{runs.landing}.{table}").append()


def journal(runs: DbtRuns) -> dict[str, tuple[Any, ...]]:
    found = runs.rows(
        "select reference_id, event, message from {schema}.journal_entries "
        "where event in ('RESUBMITTED', 'REFUSED') and reference_id != 's0'"
    )
    return {row[0]: row[1:] for row in found}


def waiting(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return runs.rows("select delivery_id, reason from {schema}.waiting_deliveries order by 1")


def test_what_returns_is_decided_or_waits_and_what_was_rejected_shuts_out_nothing(
    runs: DbtRuns, tmp_path: Path
) -> None:
    """18.6, 18.7, 18.8, 18.18, 18.27: a removed landed row takes no waiting delivery with it, and
    no request that was accepted; a rejected row shuts out no corrected one; a row that was decided
    and forgotten is not decided again; of repeated ids the one of the first commit rules.
    """
    recorded = {"destination": "records"}
    runs.land(
        "deliveries",
        [
            delivery("doubt", THEN, uuid=None, **recorded),
            delivery("lost", THEN, uuid=None, **recorded),
            delivery("seen", THEN, **recorded),
            delivery("g", THEN, guaranteed=None, **recorded),
            delivery("m", THEN, transport="PIGEON", **recorded),
            delivery("unrouted", THEN, document_type="nobody's"),
            delivery("w", THEN, destination="ships"),
        ],
    )
    rejection = {"rejection_id": "rej", "table_name": "deliveries", "delivery_id": "r"}
    rejection |= {"reason": "WRONG_TYPE", "raw_text": json.dumps(RAW), "landed_at": at(THEN)}
    runs.land("rejected_landings", [rejection])
    command = {"command_id": "c1", "trigger_name": "ships", "issued_at": at(THEN)}
    land_late_in_name(runs, "trigger_commands", command | {"command": "SUSPEND"}, "c0")
    runs.land("trigger_commands", [command | {"command": "RESUME"}])
    build(runs, THEN + 1)
    # 27: the command that landed first counts, though the name of its file is the later one
    assert waiting(runs) == [("w", "SUSPENDED")]
    assert runs.rows(
        "select delivery_id, reason from {schema}.rejected_deliveries "
        "where delivery_id in ('g', 'm') order by 1"
    ) == [("g", "MISSING_GUARANTEED"), ("m", "UNKNOWN_TRANSPORT")]

    runs.spark.sql(
        f"delete from {runs.landing}.deliveries where delivery_id in ('doubt', 'lost', 'seen', 'w')"
    )
    request = {"trigger_name": "records", "requested_at": at(THEN + 2)}
    asked = request | {"resubmission_id": "s2", "delivery_id": "doubt"}
    land_late_in_name(runs, "resubmissions", asked | {"document": "first"}, "s0")
    runs.land(
        "resubmissions",
        [
            request | {"resubmission_id": "s1", "delivery_id": "lost"},
            asked | {"document": "second"},
            request | {"resubmission_id": "s3", "delivery_id": "rej", "trigger_name": None},
        ],
    )
    runs.land("trigger_commands", [command | {"command_id": "c2", "command": "RESUME"}])
    runs.land("deliveries", [delivery("seen", THEN, landed_at=at(THEN + 2), **recorded)])
    with (runs.folder / "seeds" / "transports.csv").open("a", encoding="utf-8") as seed:
        seed.write("PIGEON,MSG,true,0\n")
    runs.run("seed", "--select", "transports")
    corrected = [
        delivery("g", THEN, **recorded),
        delivery("m", THEN, transport="PIGEON", **recorded),
        delivery("seen", THEN, uuid="another", **recorded),
    ]
    file = tmp_path / "corrected.jsonl"
    file.write_text("\n".join(json.dumps(row, default=str) for row in corrected))
    landing = land(runs.spark, find_project(runs.folder), [file])
    assert (landing.landed, landing.reasons) == (2, {"CONFLICTING": 1})
    runs.run("run", "--select", "tag:transaction", "new_documents", clock=at(THEN + 3))

    # 6 and 8
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status where delivery_id in "
        "('g', 'm', 'seen') order by 1"
    ) == [("g", "NEW"), ("m", "NEW"), ("seen", "NEW")]
    assert runs.rows(
        "select source_line > 0, reason from {schema}.rejected_deliveries "
        "where delivery_id = 'seen' order by 2"
    ) == [(True, "CONFLICTING"), (True, "REPEATED")]
    # 7
    assert waiting(runs) == [("w", "LANDED_ROW_GONE")]
    assert journal(runs) == {
        "s1": ("REFUSED", "its landed row was removed: give its document, or land the row again"),
        "s2": ("RESUBMITTED", "comes as doubt/resubmission-1"),
        "s3": (
            "REFUSED",
            "redelivery_count: 2.5 is not a whole number of 32 bits: give the corrected row as "
            "document, in JSON",
        ),
    }
    assert runs.rows(
        "select rule_id, document from {schema}.new_documents "
        "where delivery_id = 'doubt/resubmission-1'"
    ) == [("OPERATOR", "first")]
    assert not runs.rows("select 1 from {schema}.document_status where delivery_id in ('r', 'rej')")

    # what waits for its row goes on when it lands again; nothing of the journal is asked in vain
    again = [delivery("w", THEN, destination="ships"), delivery("doubt", THEN, **recorded)]
    runs.land("deliveries", [*again, delivery("late", 0)])
    runs.land("trigger_executions", [execution("w", "SUCCESS", THEN + 4)])
    runs.decide(clock=at(1))
    assert waiting(runs) == []
    assert runs.rows(
        "select delivery_id, trigger_name from {schema}.document_status "
        "where delivery_id in ('w', 'doubt') order by 1"
    ) == [("doubt", "records"), ("w", "ships")]
    assert runs.rows(
        "select delivery_id from {schema}.rejected_deliveries where reason = 'REPEATED' order by 1"
    ) == [("doubt",), ("seen",), ("w",)]
    # what no run has consumed is not forgotten; of a doubt somebody has looked at, all else is
    runs.land("deliveries", [delivery("just landed", THEN)])
    looked = {"trigger_name": "records"}
    runs.run("run-operation", operation="mark_looked_at", arguments_of_operation=looked)
    keep = {"keep_journal_days": 1, "keep_landed_days": 1}
    runs.run("run-operation", operation="maintain", variables=keep)
    assert ("just landed",) in runs.rows("select delivery_id from {landing}.deliveries")
    assert runs.rows(
        "select distinct event from {schema}.journal_entries "
        "where happened_at < timestamp '2026-04-29' order by 1"
    ) == [("REFUSED",), ("RESUBMITTED",)]


def test_commands_that_somebody_has_updated_act_once(runs: DbtRuns) -> None:
    commands = [
        {
            "command_id": f"c{number}",
            "trigger_name": "records",
            "command": command,
            "issued_at": at(number),
            "issued_by": "Ann",
        }
        for number, command in enumerate(("SUSPEND", "RESUME", "SUSPEND"))
    ]
    for number, command in enumerate(commands):
        runs.land("trigger_commands", [command])
        runs.decide(clock=at(number))
    runs.spark.sql(
        f"update {runs.landing}.trigger_commands set issued_by = null where command = 'RESUME'"
    )
    runs.land("deliveries", [delivery("d", 4)])
    runs.decide(clock=at(5))
    assert runs.rows("select is_suspended from {schema}.trigger_states order by trigger_name") == [
        (True,),
        (False,),
    ]
    assert runs.rows(
        "select event, count(*) from {schema}.journal_entries group by 1 order by 1"
    ) == [
        ("RESUMED", 1),
        ("SUSPENDED", 2),
    ]


def test_a_report_that_its_service_has_updated_is_heard(runs: DbtRuns) -> None:
    """A service may keep one row for each execution, though it should append."""
    runs.land("deliveries", [delivery("a", 0)])
    runs.decide(clock=at(1))
    runs.land("trigger_executions", [execution("a", "STARTED", 2)])
    runs.decide(clock=at(3))
    runs.spark.sql(f"update {runs.landing}.trigger_executions set event = 'SUCCESS'")
    runs.decide(clock=at(4))
    assert runs.rows("select count(*) from {schema}.open_documents") == [(0,)]


def test_a_command_given_after_the_last_run_counts_where_its_table_has_landed_again(
    runs: DbtRuns,
) -> None:
    """Also after an upkeep."""
    earlier = {"command_id": "c1", "trigger_name": "nobody", "command": "SUSPEND"}
    for number in range(2):
        runs.land("deliveries", [delivery(f"d{number}", number)])
        runs.land("trigger_commands", [{**earlier, "issued_at": at(number)}])
        runs.decide(clock=at(number))
    runs.run(
        "run-operation",
        operation="suspend_trigger",
        arguments_of_operation={"trigger_name": "records"},
    )
    runs.run("run-operation", operation="maintain")
    assert runs.rows("select kind from {schema}.published_runs where kind != 'run' limit 1")
    table = f"{runs.landing}.trigger_commands"
    rows = runs.spark.table(table).collect()
    runs.spark.sql(f"drop table {table} purge")
    runs.run(
        "run-operation",
        operation="resume_trigger",
        arguments_of_operation={"trigger_name": "ships"},
    )
    runs.land("trigger_commands", [row.asDict() for row in rows])
    runs.land("deliveries", [delivery("last", 4)])
    runs.decide()
    assert runs.rows(
        "select trigger_name from {schema}.waiting_deliveries where delivery_id = 'last'"
    ) == [("records",)]


@pytest.mark.parametrize("name", [None, "the same"])
def test_reports_without_an_id_of_their_own_are_all_heard(runs: DbtRuns, name: str | None) -> None:
    runs.land("deliveries", [delivery(name, 0) for name in ("a", "b")])
    runs.decide(clock=at(1))
    reports = [execution(name, event, 2) for name in ("a", "b") for event in ("STARTED", "SUCCESS")]
    runs.land("trigger_executions", [{**report, "execution_id": name} for report in reports])
    runs.decide(clock=at(3))
    assert runs.rows("select count(*) from {schema}.open_documents") == [(0,)]
    assert runs.rows(
        "select delivery_id, count(*) from {schema}.document_history "
        "where trigger_name = 'ships' group by 1 order by 1"
    ) == [("a", 2), ("b", 2)]


def test_columns_of_the_users_own_disturb_nothing_whatever_their_names(runs: DbtRuns) -> None:
    """Not even where they have the names of all columns of the models."""
    models = [
        node
        for node in runs.graph()["nodes"].values()
        if node["resource_type"] == "model" and node["package_name"] == "exactly_once"
    ]
    names = {column for node in models for column in node["columns"]} | {"landing_rank", "content"}
    for table in ("deliveries", "trigger_executions", "resubmissions", "trigger_commands"):
        own = names - set(runs.spark.table(f"{runs.landing}.{table}").columns)
        added = ", ".join(f"{name} string" for name in sorted(own))
        runs.spark.sql(f"alter table {runs.landing}.{table} add columns ({added})")

    twice = [delivery("d", 0, uuid="d"), delivery("copy", 1, uuid="d"), delivery("e", 2, uuid="e")]
    runs.land("deliveries", twice)
    build(runs, 3)
    runs.land("trigger_executions", [execution("d", "ERROR", 4), execution("e", "STARTED", 4)])
    runs.land("deliveries", [delivery("e", 2, uuid="again"), delivery("none", 4, transport="x")])
    build(runs, 5)
    request = {"resubmission_id": "r", "delivery_id": "d", "trigger_name": "ships"}
    runs.land("resubmissions", [{**request, "requested_at": at(6), "document": "edited"}])
    command = {"command_id": "c", "trigger_name": "records", "command": "SUSPEND"}
    runs.land("trigger_commands", [{**command, "issued_at": at(6)}])
    result = runs.dbt("build", "--exclude", "resource_type:unit_test", clock=at(70))
    assert result.success, failures(result)
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status where trigger_name = 'ships' "
        "order by 1"
    ) == [
        ("copy", "DUPLICATE"),
        ("d", "NEW"),
        ("d/resubmission-1", "NEW"),
        ("e", "NEW"),
        ("e/recovery-1", "IN_DOUBT"),
    ]
    assert runs.rows(
        "select delivery_id, document from {schema}.dispatched_documents order by 1"
    ) == [("d/resubmission-1", "edited")]


def test_an_id_that_lands_again_is_compared_on_its_days_alone(runs: DbtRuns) -> None:
    """A landed table may hold years of documents: those of other days are not read."""
    runs.land("deliveries", [delivery("a", 0)])
    runs.decide(clock=at(1))
    runs.land("deliveries", [delivery("b", DAY)])
    runs.decide(clock=at(DAY + 1))
    ((place,),) = runs.rows(
        "select file_path from {landing}.deliveries.files "
        "where readable_metrics.delivery_id.upper_bound = 'a'"
    )
    Path(place.removeprefix("file:")).unlink()
    runs.land("deliveries", [delivery("b", DAY), delivery("c", DAY), delivery("c", 2 * DAY)])
    runs.decide(clock=at(2 * DAY + 1))
    assert runs.rows("select delivery_id, reason from {schema}.rejected_deliveries order by 1") == [
        ("b", "REPEATED"),
        ("c", "CONFLICTING"),
    ]


def test_a_landed_table_that_was_dropped_stops_no_run_before_it_lands_again(runs: DbtRuns) -> None:
    held = {"delivery_id": "b", "trigger_name": "records"}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    rows = [delivery(name, 0, destination="records") for name in ("a", "b", "c")]
    runs.land("deliveries", rows[:2])
    build(runs, 1)
    runs.rows("drop table {landing}.deliveries")
    build(runs, 2)
    runs.run("run-operation", operation="release_delivery", arguments_of_operation=held)
    build(runs, 3)
    assert runs.rows("select delivery_id, reason from {schema}.waiting_deliveries") == [
        ("b", "LANDED_ROW_GONE")
    ]
    runs.land("deliveries", rows)
    build(runs, 4)
    assert runs.rows(RECORDED) == [("a", "NEW"), ("b", "NEW"), ("c", "NEW")]
    assert runs.rows("select delivery_id from {schema}.rejected_deliveries") == []


@pytest.mark.parametrize(
    ("waits", "minutes", "reason"),
    [
        (False, 0, "REPEATED"),
        (False, 5, "CONFLICTING"),
        (True, 0, "REPEATED"),
        (True, 5, "CONFLICTING"),
        (True, DAY, "CONFLICTING"),
    ],
)
def test_an_id_that_lands_again_after_its_row_was_removed_is_decided_once(
    runs: DbtRuns, waits: bool, minutes: int, reason: str
) -> None:
    """Where it waits, whatever its received_at is now; where it was decided, on that day."""
    held = {"delivery_id": "a", "trigger_name": "records"}
    if waits:
        runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    one = {"destination": "records", "uuid": "u"}
    runs.land("deliveries", [delivery("a", 0, **one)])
    runs.decide(clock=at(1))
    runs.rows("delete from {landing}.deliveries")
    if waits:
        runs.run("run-operation", operation="release_delivery", arguments_of_operation=held)
    # a run of its own, which notices that the row is gone
    build(runs, 2)
    runs.land("deliveries", [delivery("a", minutes, **one)])
    build(runs, minutes + 3)
    assert runs.rows("select delivery_id, reason from {schema}.rejected_deliveries") == [
        ("a", reason)
    ]
    is_back = waits and reason == "REPEATED"
    assert runs.rows(RECORDED) == ([("a", "NEW")] if is_back or not waits else [])
    still = [("a", "LANDED_ROW_GONE")] if waits and not is_back else []
    assert runs.rows("select delivery_id, reason from {schema}.waiting_deliveries") == still


def test_the_row_that_landed_first_rules_also_if_the_table_was_compacted_since(
    runs: DbtRuns,
) -> None:
    """Of two commits that no run has consumed, whatever their files are called."""
    landed = f"{runs.landing}.deliveries"
    runs.spark.sql(f"alter table {landed} set tblproperties ('write.distribution-mode' = 'none')")
    runs.land("deliveries", [delivery("a", 0)])
    runs.decide(clock=at(1))
    # two files, the second of which has c
    runs.spark.sql(
        f"insert into {landed} (delivery_id, received_at, landed_at, transport, document_type, "
        "guaranteed, uuid, redelivery_count) select if(id = 0, 'b', 'c'), "
        "timestamp '2026-05-01 12:02:00', timestamp '2026-05-01 12:02:00', 'RABBITMQ', "
        "'order.created', true, if(id = 0, 'b', 'first'), 0 from range(0, 2, 1, 2)"
    )
    runs.land("deliveries", [delivery("c", 2, uuid="second")])
    first, second = (
        runs.rows(f"select distinct _file from {landed} where uuid = '{uuid}'")[0][0]
        for uuid in ("first", "second")
    )
    assert Path(second).name < Path(first).name, "by their names the second one would rule"
    runs.spark.sql(
        f"call lake.system.rewrite_data_files('lake.{landed}', "
        "options => map('rewrite-all', 'true'))"
    )
    runs.land("deliveries", [delivery("d", 2)])
    build(runs, 3)
    assert runs.rows("select delivery_id, reason from {schema}.rejected_deliveries") == [
        ("c", "CONFLICTING")
    ]
    assert runs.rows(
        "select document_key from {schema}.document_status "
        "where delivery_id = 'c' and trigger_name = 'records'"
    ) == [("first",)]


def test_a_time_that_no_literal_can_name_rejects_its_row_alone(runs: DbtRuns) -> None:
    """Another writer can append it. It stops no run, also where rows are compared."""
    rejected = (
        "select delivery_id, reason from {schema}.rejected_deliveries "
        "where reason != 'REPEATED' order by rejected_at, 1"
    )

    def land_far(name: str) -> None:
        runs.spark.sql(
            f"insert into {runs.landing}.deliveries (delivery_id, received_at, transport, "
            "document_type, guaranteed, uuid) select concat(id, ' ', sign), "
            "timestamp_micros(sign * 9223372036854775807), 'RABBITMQ', 'order.created', true, id "
            f"from (select '{name}' as id, explode(array(-1L, 1L)) as sign)"
        )

    land_far("far")
    runs.land("deliveries", [delivery("a", 0)])
    build(runs, 1)
    impossible = [(f"far {sign}", "IMPOSSIBLE_RECEIVED_AT") for sign in (-1, 1)]
    assert runs.rows(rejected) == impossible
    land_far("far")
    runs.land("deliveries", [delivery("b", 2), delivery("a", 0)])
    build(runs, 3)
    assert runs.rows(rejected) == impossible * 2
    assert runs.rows(RECORDED) == [("a", "NEW"), ("b", "NEW")]

    runs.spark.sql(f"update {runs.landing}.deliveries set errors_to = 'x' where delivery_id = 'b'")
    land_far("further")
    runs.land("deliveries", [delivery("c", 4)])
    build(runs, 5)
    assert runs.rows(RECORDED)[2:] == [("c", "NEW")]
    assert ("further -1", "IMPOSSIBLE_RECEIVED_AT") in runs.rows(rejected)
    assert ("b", "CONFLICTING") in runs.rows(rejected)


def test_a_landing_time_that_nobody_can_compute_with_counts_as_none(runs: DbtRuns) -> None:
    """A report of the document would stop every run."""
    runs.spark.sql(
        f"insert into {runs.landing}.deliveries (delivery_id, received_at, landed_at, transport, "
        "document_type, guaranteed, uuid) values ('a', timestamp '2026-05-01 12:00:00', "
        "timestamp_micros(-9223372036854775808), 'RABBITMQ', 'order.created', true, 'a')"
    )
    build(runs, 1)
    runs.land("trigger_executions", [execution("a", "STARTED", 2)])
    runs.decide(clock=at(3))
    runs.land("trigger_executions", [execution("a", "SUCCESS", 4)])
    runs.decide(clock=at(5))
    assert runs.rows(
        "select processing_status, started_at from {schema}.document_history "
        "where trigger_name = 'ships' order by 1"
    ) == [(status, at(1).replace(tzinfo=None)) for status in ("completed", "processing")]


def test_a_landed_column_that_is_not_of_the_contract_is_named(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    landed = f"{runs.landing}.deliveries"
    runs.spark.sql(f"alter table {landed} alter column redelivery_count type bigint")
    runs.spark.sql(
        f"insert into {landed} (delivery_id, received_at, transport, document_type, guaranteed, "
        "redelivery_count) values ('a', timestamp '2026-05-01 12:00:00', 'RABBITMQ', "
        "'order.created', true, 99999999999)"
    )
    capfd.readouterr()
    result = runs.dbt("build", "--selector", "hot_path", clock=at(1), quiet=False)
    assert not result.success
    assert f"{landed}: the column redelivery_count is bigint, and must be int" in (
        capfd.readouterr().out
    )
    runs.spark.sql(f"alter table {landed} rename column errors_to to errors")
    result = runs.dbt("build", "--selector", "hot_path", clock=at(2), quiet=False)
    assert not result.success
    assert f"{landed} has no column errors_to: `alter table {landed} add column " in (
        capfd.readouterr().out
    )
