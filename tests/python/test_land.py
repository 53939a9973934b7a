"""Landing: what is appended, what is kept apart and why, through a real lake."""

from __future__ import annotations

import csv
import gzip
import json
import re
import tracemalloc
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once import cli
from dbt_exactly_once.adapter.lake import SQLITE, ensure_place
from dbt_exactly_once.adapter.prepare import write_profile
from dbt_exactly_once.adapter.session import Project, find_project, read_credentials
from dbt_exactly_once.commands.land import LANDING_TABLES
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.land import land, stage
from dbt_exactly_once.landing.landed_tables import REJECTED, read_landed_tables
from dbt_exactly_once.landing.values import NotOfTypeError, parsed_time

Rows = Callable[[str], list[tuple[Any, ...]]]

UTC = timezone.utc


def delivery(delivery_id: str, /, **other: Any) -> dict[str, Any]:
    """A delivery that keeps the contract, but for what is given."""
    return {
        "delivery_id": delivery_id,
        "received_at": "2026-03-01T10:00:00Z",
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": f"uuid-{delivery_id}",
        "redelivery_count": 0,
        "document": '{"order": {"number": "SO-1"}}',
    } | other


def write_lines(path: Path, *rows: object) -> Path:
    """A file of JSON lines; text and bytes go in as they are."""
    lines = [
        row
        if isinstance(row, bytes)
        else (row if isinstance(row, str) else json.dumps(row)).encode()
        for row in rows
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture
def landed(rows: Rows, project: Project) -> Callable[..., list[tuple[Any, ...]]]:
    """Columns of a landed table, by default of deliveries, in the order in which they landed."""

    def read(*columns: str, table: str = "deliveries") -> list[tuple[Any, ...]]:
        return rows(
            f"select {', '.join(columns)} from {project.landing_schema}.{table} "
            f"order by {'landed_at, ' if table == 'deliveries' else ''}_file, _pos"
        )

    return read


@pytest.fixture
def rejections(rows: Rows, project: Project) -> Callable[[], list[tuple[Any, ...]]]:
    """delivery_id, reason, message, line of what was kept apart."""
    return lambda: rows(
        "select delivery_id, reason, message, source_line "
        f"from {project.landing_schema}.{REJECTED} order by landed_at, source_line"
    )


# ---------- formats


def as_csv(path: Path, rows_to_write: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=sorted({k for row in rows_to_write for k in row}))
        writer.writeheader()
        for row in rows_to_write:
            writer.writerow({k: str(v).lower() if v is True else v for k, v in row.items()})
    return path


def packed(path: Path) -> Path:
    target = path.with_name(path.name + ".gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


def as_parquet(path: Path, rows_to_write: list[dict[str, Any]]) -> Path:
    typed = [
        row | {"received_at": datetime.fromisoformat(row["received_at"].replace("Z", "+00:00"))}
        for row in rows_to_write
    ]
    pq.write_table(pa.Table.from_pylist(typed), path)
    return path


FORMATS: dict[str, Callable[[Path, list[dict[str, Any]]], Path]] = {
    "jsonl": lambda folder, some: write_lines(folder / "feed.jsonl", *some),
    "jsonl.gz": lambda folder, some: packed(write_lines(folder / "feed.jsonl", *some)),
    "csv": lambda folder, some: as_csv(folder / "feed.csv", some),
    "csv.gz": lambda folder, some: packed(as_csv(folder / "feed.csv", some)),
    "parquet": lambda folder, some: as_parquet(folder / "feed.parquet", some),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_delivery_lands_the_same_from_every_format(
    kind: str, spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any]
) -> None:
    some = [
        delivery("b", document='two\nlines, a "quote" and Łódź', redelivery_count=3),
        delivery("a", received_at="2026-03-02T23:59:59.123456+02:00"),
    ]
    result = land(spark, project, [FORMATS[kind](tmp_path, some)])

    assert (result.landed, result.rejected, result.repeated) == (2, 0, 0)
    columns = ("delivery_id", "unix_micros(received_at)", "guaranteed", "redelivery_count")
    assert landed(*columns, "document", "track_id") == [
        ("b", 1772359200000000, True, 3, 'two\nlines, a "quote" and Łódź', None),
        ("a", 1772488799123456, True, 0, '{"order": {"number": "SO-1"}}', None),
    ]


def test_the_demo_feed_lands_whole(
    spark: SparkSession, project: Project, landed: Callable[..., Any]
) -> None:
    result = land(spark, project, [project.folder / "demo/rabbitmq_orders.jsonl.gz"])
    assert str(result) == "deliveries: landed 4141, rejected 0, repeated 0"
    ids = [row[0] for row in landed("delivery_id")]
    with gzip.open(project.folder / "demo/rabbitmq_orders.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    days = sorted({row["received_at"][:10] for row in rows})
    as_filed = [r["delivery_id"] for day in days for r in rows if r["received_at"][:10] == day]
    assert ids == as_filed


# ---------- the contract

BAD_ROWS: dict[str, tuple[object, str, str]] = {
    "no delivery_id": (delivery("x", delivery_id=None), "MISSING_DELIVERY_ID", "delivery_id"),
    "empty delivery_id": (delivery(""), "MISSING_DELIVERY_ID", "delivery_id"),
    "a number as delivery_id": (delivery("x", delivery_id=7), "WRONG_TYPE", "delivery_id: 7"),
    "recovery id": (delivery("x/recovery-1"), "RESERVED_ID", "x/recovery-1"),
    "resubmission id": (delivery("x/resubmission-1"), "RESERVED_ID", "/resubmission-"),
    "no received_at": (delivery("x", received_at=None), "MISSING_RECEIVED_AT", "received_at"),
    "text as received_at": (
        delivery("x", received_at="abc"),
        "IMPOSSIBLE_RECEIVED_AT",
        'received_at: "abc"',
    ),
    "30 February": (
        delivery("x", received_at="2026-02-30T00:00:00Z"),
        "IMPOSSIBLE_RECEIVED_AT",
        "2026-02-30",
    ),
    "hour 25": (delivery("x", received_at="2026-02-01T25:00:00Z"), "IMPOSSIBLE_RECEIVED_AT", "25"),
    "offset of 99 hours": (
        delivery("x", received_at="2026-02-01T00:00:00+99:00"),
        "IMPOSSIBLE_RECEIVED_AT",
        "+99:00",
    ),
    "before all time": (
        delivery("x", received_at="0001-01-01T00:00:00+01:00"),
        "IMPOSSIBLE_RECEIVED_AT",
        "0001",
    ),
    "seconds since 1970": (delivery("x", received_at=1772359200), "IMPOSSIBLE_RECEIVED_AT", "177"),
    "unknown transport": (delivery("x", transport="PIGEON"), "UNKNOWN_TRANSPORT", "PIGEON"),
    "transport in lower case": (delivery("x", transport="sqs"), "UNKNOWN_TRANSPORT", "sqs"),
    "no transport": (delivery("x", transport=None), "UNKNOWN_TRANSPORT", "transport"),
    "no guaranteed": (delivery("x", guaranteed=None), "MISSING_GUARANTEED", "guaranteed"),
    "yes as guaranteed": (delivery("x", guaranteed="yes"), "WRONG_TYPE", 'guaranteed: "yes"'),
    "1 as guaranteed": (delivery("x", guaranteed=1), "WRONG_TYPE", "guaranteed: 1"),
    "fractional count": (delivery("x", redelivery_count=1.5), "WRONG_TYPE", "1.5"),
    "text as count": (delivery("x", redelivery_count="1"), "WRONG_TYPE", 'redelivery_count: "1"'),
    "true as count": (delivery("x", redelivery_count=True), "WRONG_TYPE", "redelivery_count: true"),
    "count beyond 32 bits": (delivery("x", redelivery_count=2**31), "WRONG_TYPE", "2147483648"),
    "a number as uuid": (delivery("x", uuid=12), "WRONG_TYPE", "uuid: 12"),
    "an object as uuid": (delivery("x", uuid={"a": 1}), "WRONG_TYPE", "uuid"),
    "half a surrogate pair": (delivery("x", uuid="\ud800"), "WRONG_TYPE", "surrogate"),
    "a number as document": (delivery("x", document=5), "WRONG_TYPE", "document: 5"),
    "an array": ("[1, 2]", "NOT_JSON", "[1, 2]"),
    "a cut line": ('{"delivery_id": "x", "received', "NOT_JSON", "not JSON"),
    "NaN": ('{"delivery_id": "x", "redelivery_count": NaN}', "NOT_JSON", "NaN"),
    "a raw NUL": ('{"delivery_id": "x\0"}', "NOT_JSON", "not JSON"),
    "nested too deep": ("[" * 100_000, "NOT_JSON", "not JSON"),
    "bytes that are no UTF-8": (b'{"delivery_id": "\xff\xfe"}', "NOT_UTF8", "0xff"),
}


def test_every_broken_row_is_kept_with_its_reason_and_stops_no_other(
    spark: SparkSession,
    project: Project,
    tmp_path: Path,
    rejections: Callable[[], Any],
    rows: Rows,
) -> None:
    # other ids than in the table above, so that no row is a repetition of another
    some: list[object] = []
    for number, (row, _, _) in enumerate(BAD_ROWS.values()):
        if isinstance(row, dict) and str(row["delivery_id"]).startswith("x"):
            row = row | {"delivery_id": f"{number}-{row['delivery_id']}"}
        some += [row, delivery(f"good-{number}")]
    file = write_lines(tmp_path / "feed.jsonl", *some)
    result = land(spark, project, [file])

    assert (result.landed, result.rejected, result.repeated) == (len(BAD_ROWS), len(BAD_ROWS), 0)
    kept = rejections()
    assert [row[3] for row in kept] == [2 * number + 1 for number in range(len(BAD_ROWS))]
    for (kind, (_, reason, telling)), (_, found, message, _) in zip(
        BAD_ROWS.items(), kept, strict=True
    ):
        assert (kind, found) == (kind, reason)
        assert telling in message, kind
    raw = rows(
        f"select raw_text, source_file from {project.landing_schema}.{REJECTED} "
        "where reason in ('NOT_UTF8', 'UNKNOWN_TRANSPORT') order by source_line desc limit 1"
    )
    assert raw == [('{"delivery_id": "\\xff\\xfe"}', str(file))]


def test_csv_rows_are_judged_as_those_of_json(
    spark: SparkSession, project: Project, tmp_path: Path, rejections: Callable[[], Any]
) -> None:
    file = tmp_path / "feed.csv"
    file.write_bytes(
        b"\xef\xbb\xbfdelivery_id,received_at,transport,guaranteed,redelivery_count,document\r\n"
        b'a,2026-03-01T10:00:00Z,SQS,TRUE,1,"two\r\nlines"\r\n'
        b"b,2026-03-01 10:00:00,SQS,yes,1,\r\n"
        b"c,2026-03-01T10:00:00Z,SQS,false,1.5,\r\n"
        b"d,2026-03-01T10:00:00Z,SQS,false\r\n"
        b"e,2026-03-01T10:00:00Z,SQS,false,,\xff\r\n"
        b"\r\n"
        b"f,,SQS,false,,\r\n"
        b'g,2026-03-01T10:00:00Z,SQS,false,,"open\r\n'
    )
    result = land(spark, project, [file])
    assert result.landed == 1
    assert [(row[1], row[3]) for row in rejections()] == [
        ("WRONG_TYPE", 4),
        ("WRONG_TYPE", 5),
        ("NOT_CSV", 6),
        ("NOT_UTF8", 7),
        ("MISSING_RECEIVED_AT", 9),
        ("NOT_CSV", 10),
    ]


def test_a_parquet_column_of_another_type_is_a_fault_of_its_rows(
    spark: SparkSession, project: Project, tmp_path: Path, rejections: Callable[[], Any]
) -> None:
    table = pa.table(
        {
            "delivery_id": ["a", "b"],
            "received_at": pa.array([1_772_359_200_123_456_789] * 2, pa.timestamp("ns")),
            "transport": pa.array(["KAFKA", "KAFKA"]).dictionary_encode(),
            "guaranteed": [True, True],
            "uuid": pa.array([None, 5], pa.int64()),
            "document": [{"order": 1}, None],
        }
    )
    pq.write_table(table, tmp_path / "feed.parquet")
    result = land(spark, project, [tmp_path / "feed.parquet"])
    assert (result.landed, result.reasons) == (1, {"WRONG_TYPE": 1})
    assert rejections() == [("b", "WRONG_TYPE", "uuid: 5 is not text", 2)]


def test_a_document_given_as_an_object_lands_as_the_text_it_has_in_the_file(
    spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any]
) -> None:
    text = '{"total":70.10, "id": 12345678901234567890.5, "a": [1,  2]}'
    rest = json.dumps({k: v for k, v in delivery("a").items() if k != "document"})
    file = write_lines(tmp_path / "feed.jsonl", f'{{ "document" : {text} , {rest[1:]}')
    land(spark, project, [file])
    assert landed("document") == [(text,)]


def test_nul_characters_are_text(
    spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any]
) -> None:
    land(spark, project, [write_lines(tmp_path / "f.jsonl", delivery("a", document="x\0y"))])
    assert landed("document") == [("x\0y",)]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-01T10:00:00Z", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01 10:00:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00.123456789Z", datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)),
        ("2026-03-01T10:00:00,5-0130", datetime(2026, 3, 1, 11, 30, 0, 500000, tzinfo=UTC)),
        ("2026-03-01T10:00+02", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2026-02-29T00:00:00Z", None),
        ("2026-03-01T10:00:60Z", None),
        ("2026-03-01T24:00:00Z", None),
        ("2026-03-01T10:00:00+01:75", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("٢٠٢٦-03-01T10:00:00Z", None),
        (" 2026-03-01T10:00:00Z", None),
        ("", None),
    ],
)
def test_a_time_is_iso_8601_and_becomes_utc(text: str, time: datetime | None) -> None:
    if time is None:
        with pytest.raises(NotOfTypeError):
            parsed_time(text)
    else:
        assert parsed_time(text) == time


# ---------- the first landed rules


def test_of_one_delivery_id_the_first_landed_rules(
    spark: SparkSession,
    project: Project,
    tmp_path: Path,
    landed: Callable[..., Any],
    rejections: Callable[[], Any],
) -> None:
    first = write_lines(
        tmp_path / "1.jsonl",
        delivery("a"),
        delivery("b", transport="PIGEON"),
        delivery("a", landed_at="2001-01-01T00:00:00Z"),
        delivery("a", uuid="other"),
        delivery("b"),
    )
    second = write_lines(tmp_path / "2.jsonl", delivery("a"), delivery("c"))
    result = land(spark, project, [first, second])
    assert (result.landed, result.repeated) == (3, 2)
    assert result.reasons == {"REPEATED": 2, "CONFLICTING": 1, "UNKNOWN_TRANSPORT": 1}
    assert landed("delivery_id", "uuid") == [("a", "uuid-a"), ("b", "uuid-b"), ("c", "uuid-c")]

    third = write_lines(
        tmp_path / "3.jsonl",
        delivery("a", uuid="other"),
        # of the two that come now, the one like the landed one repeats it, whatever their order
        delivery("a"),
        delivery("b", received_at="2026-03-01T11:00:00+01:00"),
        delivery("c", received_at="2026-03-05T10:00:00Z"),
        delivery("d"),
    )
    result = land(spark, project, [third])
    assert str(result) == "deliveries: landed 1, rejected 2 (CONFLICTING 2), repeated 2"
    assert [row[:2] for row in rejections()][-4:] == [
        ("a", "CONFLICTING"),
        ("a", "REPEATED"),
        ("b", "REPEATED"),
        ("c", "CONFLICTING"),
    ]


def test_landing_a_file_again_changes_nothing(
    spark: SparkSession, project: Project, tmp_path: Path, rows: Rows
) -> None:
    table = f"{project.landing_schema}.deliveries"
    file = write_lines(tmp_path / "f.jsonl", *(delivery(str(i)) for i in range(50)))
    land(spark, project, [file])
    snapshots = rows(f"select snapshot_id, summary['added-records'] from {table}.snapshots")
    assert [added for _, added in snapshots] == ["50"], "one commit a landing"
    assert land(spark, project, [file]).repeated == 50
    assert rows(f"select snapshot_id, summary['added-records'] from {table}.snapshots") == snapshots


def test_rows_keep_the_order_of_the_files(
    spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any]
) -> None:
    def some(prefix: str) -> list[dict[str, Any]]:
        return [
            delivery(
                f"{prefix}-{i * 7919 % 20000:05}", received_at=f"2026-03-0{1 + i % 3}T10:00:00Z"
            )
            for i in range(20_000)
        ]

    files = [write_lines(tmp_path / f"{name}.jsonl", *some(name)) for name in ("z", "a")]
    land(spark, project, files)
    found = landed("delivery_id", "day(received_at)")
    filed = [(r["delivery_id"], int(r["received_at"][8:10])) for r in some("z") + some("a")]
    for day in (1, 2, 3):
        assert [row for row in found if row[1] == day] == [row for row in filed if row[1] == day]


def test_landing_sets_one_time_for_all_its_rows(
    spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any], rows: Rows
) -> None:
    before = datetime.now(UTC)
    file = write_lines(
        tmp_path / "f.jsonl",
        delivery("a", landed_at="2001-01-01T00:00:00Z"),
        delivery("b", landed_at="no time at all"),
        delivery("c", guaranteed=None),
    )
    assert land(spark, project, [file]).landed == 2
    times = landed("unix_micros(landed_at)") + rows(
        f"select unix_micros(landed_at) from {project.landing_schema}.{REJECTED}"
    )
    assert len(times) == 3
    assert len(set(times)) == 1
    assert before.timestamp() <= times[0][0] / 1e6 <= datetime.now(UTC).timestamp()


def test_rejection_ids_are_unique(
    spark: SparkSession, project: Project, tmp_path: Path, rows: Rows
) -> None:
    file = write_lines(tmp_path / "f.jsonl", *["nonsense"] * 3)
    land(spark, project, [file, file])
    land(spark, project, [file])
    ids = rows(
        f"select count(*), count(distinct rejection_id) from {project.landing_schema}.{REJECTED}"
    )
    assert ids == [(9, 9)]


# ---------- the other tables


def test_executions_land_once_each(
    spark: SparkSession,
    project: Project,
    tmp_path: Path,
    landed: Callable[..., Any],
    rejections: Callable[[], Any],
) -> None:
    started = {
        "execution_id": "e1",
        "delivery_id": "a",
        "trigger_name": "t",
        "service": "s",
        "attempt": 1,
        "event": "STARTED",
        "started_at": "2026-03-01T10:00:00Z",
        "recorded_at": "2026-03-01T10:00:00Z",
    }
    file = write_lines(
        tmp_path / "f.jsonl",
        started,
        started | {"execution_id": "e2", "event": "SUCCESS", "ended_at": "2026-03-01T10:00:05Z"},
        started,
        started | {"event": "ERROR"},
        started | {"execution_id": None},
        started | {"execution_id": "e3", "ended_at": "soon"},
    )
    result = land(spark, project, [file], "trigger_executions")
    assert str(result) == (
        "trigger_executions: landed 2, rejected 3 "
        "(CONFLICTING 1, MISSING_EXECUTION_ID 1, WRONG_TYPE 1), repeated 1"
    )
    columns = ("execution_id", "event", "cast(ended_at as string)")
    assert landed(*columns, table="trigger_executions") == [
        ("e1", "STARTED", None),
        ("e2", "SUCCESS", "2026-03-01 10:00:05"),
    ]
    assert land(spark, project, [file], "trigger_executions").landed == 0
    assert {row[0] for row in rejections()} == {"a"}


@pytest.mark.parametrize("table", ["resubmissions", "trigger_commands"])
def test_requests_and_commands_land(
    table: str, spark: SparkSession, project: Project, tmp_path: Path, landed: Callable[..., Any]
) -> None:
    definition = read_landed_tables(project)[table]
    of_type = {"timestamp": "2026-03-01T10:00:00Z", "boolean": True}
    row = {name: of_type.get(type_, f"some {name}") for name, type_ in definition.types.items()}
    file = write_lines(tmp_path / "f.jsonl", row, row)
    result = land(spark, project, [file], table)
    assert (result.landed, result.repeated) == (1, 1)
    assert landed(definition.id_column, table=table) == [(f"some {definition.id_column}",)]


def test_the_command_lands_every_table_of_the_source_but_its_own_and_those_of_other_commands(
    project: Project,
) -> None:
    by_others = {"delivery_holds", "sent_errors"}
    tables = set(read_landed_tables(project))
    assert {*LANDING_TABLES, REJECTED, *by_others} == tables


# ---------- files


def test_a_file_that_cannot_be_read_lands_nothing(
    spark: SparkSession, project: Project, tmp_path: Path, rows: Rows
) -> None:
    good = write_lines(tmp_path / "good.jsonl", delivery("a"))
    whole = packed(write_lines(tmp_path / "big.jsonl", *(delivery(str(i)) for i in range(2000))))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "not.parquet").write_text("no Parquet")
    (tmp_path / "feed.xml").write_text("<feed/>")
    for name, why in (
        ("missing.jsonl", "No such file"),
        ("cut.jsonl.gz", "cannot be read"),
        ("not.parquet", "cannot be read"),
        ("feed.xml", "the name has no known format"),
    ):
        with pytest.raises(ExactlyOnceError, match=why) as error:
            land(spark, project, [good, tmp_path / name])
        assert name in error.value.msg
        assert "\n" not in error.value.msg
    tables = (
        rows(f"show tables in {project.landing_schema}")
        if rows(f"show namespaces like '{project.landing_schema}'")
        else []
    )
    for table in tables:
        assert rows(f"select count(*) from {project.landing_schema}.{table[1]}") == [(0,)]


def test_the_command_tells_a_missing_file_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["land", str(tmp_path / "none.jsonl")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "none.jsonl cannot be read, nothing was landed" in said


def test_the_command_says_what_was_rejected_and_fails_where_nothing_has_landed(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    place = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    bad = write_lines(tmp_path / "bad.jsonl", *[delivery("x", transport="PIGEON")] * 7, "{")

    assert cli.main(["land", str(bad), *place]) == 1
    counts, *examples, more, kept = capsys.readouterr().out.splitlines()
    assert counts == (
        "deliveries: landed 0, rejected 8 (NOT_JSON 1, UNKNOWN_TRANSPORT 7), repeated 0"
    )
    assert examples == [
        f"  {bad}, line {number}: UNKNOWN_TRANSPORT: transport PIGEON is not one of "
        "seeds/transports.csv"
        for number in range(1, 6)
    ]
    assert more == "  and 3 more"
    shown = re.fullmatch(
        r'they are kept; to see them: dbt show --limit -1 --inline "(select .*)"', kept
    )
    assert shown
    assert f"from {runs.landing}.rejected_landings" in kept
    assert [row[3] for row in runs.rows(shown[1])] == list(range(1, 9))
    # as the line says it, and all of it
    found = runs.run("show", "--limit", "-1", "--inline", shown[1])
    assert len(found.result.results[0].agate_table) == 8

    good = write_lines(tmp_path / "good.jsonl", delivery("a"))
    assert cli.main(["land", str(bad), str(good), *place]) == 0
    assert cli.main(["land", str(good), *place]) == 0, "what has landed already is no failure"
    assert capsys.readouterr().out.splitlines()[-1] == (
        "deliveries: landed 0, rejected 0, repeated 1"
    )


def test_transports_that_cannot_be_read_land_nothing(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A transport below an open quote would be unknown, and its deliveries rejected."""
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    place = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    good = write_lines(tmp_path / "good.jsonl", delivery("a"))
    seed = tmp_path / "seeds" / "transports.csv"
    header, *transports = seed.read_text(encoding="utf-8").splitlines()
    for text, told in (
        ("\n".join([header, '"' + transports[0], *transports[1:]]), "cannot be read at line "),
        ("\n".join([header.replace("transport,", "name,"), *transports]), "names no transport"),
        (header, "names no transport"),
    ):
        seed.write_text(text + "\n", encoding="utf-8")
        assert cli.main(["land", str(good), *place]) == 1
        assert f"{seed} {told}" in capsys.readouterr().err
    assert (
        runs.rows(
            f"select 1 from {runs.landing}.deliveries union all "
            f"select 1 from {runs.landing}.rejected_landings"
        )
        == []
    )


def test_unknown_columns_are_left_out_and_told_once(
    spark: SparkSession, project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_lines(tmp_path / "f.jsonl", *(delivery(str(i), colour="red") for i in range(9)))
    assert land(spark, project, [file]).landed == 9
    assert capsys.readouterr().err.count("'colour'") == 1


def test_memory_does_not_grow_with_the_feed(project: Project, tmp_path: Path) -> None:
    target = read_landed_tables(project)["deliveries"]
    line = json.dumps(delivery("{}", document="x" * 400))

    def peak(number: int) -> int:
        file = tmp_path / f"{number}.jsonl"
        with file.open("w") as out:
            out.writelines(line.replace("{}", str(i)) + "\n" for i in range(number))
        tracemalloc.start()
        arrow_before = pa.total_allocated_bytes()
        stage([file], target, tmp_path / f"{number}.parquet")
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - arrow_before < 10_000_000
        return peak_bytes

    small, large = peak(20_000), peak(200_000)
    assert large < 1.5 * small, f"{small:,} bytes for 20,000 rows, {large:,} for 200,000"


# ---------- where the lake is


def test_the_profile_puts_the_lake_beside_itself_whatever_pwd_says(
    profiles_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXACTLY_ONCE_LAKE", raising=False)
    monkeypatch.setenv("PWD", "/nowhere")
    parameters = read_credentials(find_project(), profiles_dir).server_side_parameters
    assert (
        parameters["spark.sql.catalog.lake.uri"] == f"jdbc:sqlite:{profiles_dir}/.lake/catalog.db"
    )
    assert parameters["spark.sql.catalog.lake.warehouse"] == f"{profiles_dir}/.lake/warehouse"


def test_a_local_place_is_made_and_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parameters = {
        "spark.sql.catalog.lake.uri": "jdbc:sqlite:./.lake/catalog.db",
        "spark.sql.catalog.lake.warehouse": "./.lake/warehouse",
        "spark.sql.catalog.far.uri": "jdbc:postgresql://host/lake",
        "spark.sql.catalog.far.warehouse": "s3://bucket/lake",
        "spark.master": "local[2]",
    }
    far = {name: value for name, value in parameters.items() if ".lake." not in name}
    ensure_place(parameters)
    assert parameters["spark.sql.catalog.lake.uri"] == f"jdbc:sqlite:{tmp_path}/.lake/catalog.db"
    assert parameters["spark.sql.catalog.lake.warehouse"] == f"{tmp_path}/.lake/warehouse"
    assert (tmp_path / ".lake/warehouse").is_dir()
    assert parameters | far == parameters


def test_what_a_rest_catalog_calls_its_warehouse_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parameters = {
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": "https://catalog.example.org",
        "spark.sql.catalog.lake.warehouse": "orders",
    }
    given = dict(parameters)
    ensure_place(parameters)
    assert parameters == given
    assert not list(tmp_path.iterdir())


def test_a_catalog_is_lost_where_its_own_warehouse_has_tables(tmp_path: Path) -> None:
    """Neither options behind its file nor a second catalog hide that, or are taken for it."""

    def with_table(folder: Path) -> Path:
        kept = folder / "shop" / "runs" / "metadata" / "v1.metadata.json"
        kept.parent.mkdir(parents=True)
        kept.write_text("{}")
        return folder

    file, warehouse = tmp_path / "lake" / "catalog.db", tmp_path / "lake" / "warehouse"
    lake = {
        "spark.sql.catalog.lake.uri": f"{SQLITE}{file}?busy_timeout=30000",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }
    other = {
        "spark.sql.catalog.old.type": "hadoop",
        "spark.sql.catalog.old.warehouse": str(with_table(tmp_path / "old")),
    }
    # a new lake beside an old one
    ensure_place({**lake, **other})
    file.touch()
    with_table(warehouse)
    parameters = dict(lake)
    ensure_place(parameters)
    assert parameters == lake
    file.unlink()
    for settings in (lake, {**lake, **other}, {**other, **lake}):
        with pytest.raises(ExactlyOnceError, match=f"missing while {warehouse} has tables"):
            ensure_place(dict(settings))


def test_a_lake_is_prepared_elsewhere_and_other_catalogs_are_left(tmp_path: Path) -> None:
    there = {
        "spark.sql.catalog.lake.uri": f"{SQLITE}/somewhere/catalog.db",
        "spark.sql.catalog.lake.warehouse": "s3://bucket/warehouse",
        "spark.sql.catalog.other.uri": "http://localhost:8181",
        "spark.sql.catalog.other.warehouse": "name",
    }
    write_profile(tmp_path, there)
    profile = yaml.safe_load((tmp_path / "profiles.yml").read_text(encoding="utf-8"))
    assert profile["exactly_once"]["outputs"]["local"]["server_side_parameters"] == {
        **there,
        "spark.sql.catalog.lake.uri": f"{SQLITE}{tmp_path}/catalog.db",
        "spark.sql.catalog.lake.warehouse": f"{tmp_path}/warehouse",
    }
