"""A file that is not what its name says, or whose rows are no rows, is told in one line."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing import files, json_arrays, json_rows
from dbt_exactly_once.landing.files import check_readable, read_batches
from dbt_exactly_once.landing.land import Landing
from dbt_exactly_once.landing.values import NotOfTypeError, typed, typed_column

COLUMNS = ("delivery_id", "received_at", "transport", "guaranteed", "document")
HEADER = "delivery_id;received_at;transport;guaranteed\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"delivery_id": ["a"]}), path)
    return path.read_bytes()


def told(path: Path) -> str:
    with pytest.raises(ExactlyOnceError) as error:
        check_readable(path, COLUMNS)
    return error.value.msg


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "feed.csv",
            HEADER + "a;2026-03-01T10:00:00Z;SQS;true\n",
            'FILE looks like CSV with ";" between its fields, nothing was landed: write it with '
            "commas",
        ),
        (
            "feed.csv",
            b"\xef\xbb\xbf" + HEADER.replace(";", "\t").encode(),
            'FILE looks like CSV with "\\t" between its fields, nothing was landed: write it with '
            "commas",
        ),
        (
            "feed.csv",
            "id|when|what\n1|2|3\n",
            'FILE looks like CSV with "|" between its fields, nothing was landed: write it with '
            "commas",
        ),
        (
            "feed.csv",
            '{"delivery_id": "a"}\n',
            "FILE holds JSON, not what its name says, nothing was landed: name it .jsonl",
        ),
        (
            "feed.csv.gz",
            gzip.compress(b'{"delivery_id": "a"}\n', mtime=0),
            "FILE holds JSON, not what its name says, nothing was landed: name it .jsonl",
        ),
        (
            "feed.jsonl",
            '"delivery_id","received_at","transport"\r\na,b,c\r\n',
            "FILE holds CSV, not what its name says, nothing was landed: name it .csv",
        ),
        (
            "feed.parquet",
            '[{"delivery_id": "a"}]',
            "FILE holds JSON, not what its name says, nothing was landed: name it .jsonl",
        ),
        (
            "feed.csv",
            b"PK\x03\x04 and more",
            "FILE holds a zip archive or a spreadsheet, not what its name says, nothing was "
            "landed: write it as JSON lines, CSV or Parquet, in UTF-8",
        ),
        (
            "feed.json",
            '{"delivery_id": "a"}\n'.encode("utf-16"),
            "FILE holds text in UTF-16, not what its name says, nothing was landed: write it as "
            "JSON lines, CSV or Parquet, in UTF-8",
        ),
        (
            "feed.log",
            '{"delivery_id": "a"}\n',
            "FILE: the name has no known format, nothing was landed; it holds JSON, name it .jsonl",
        ),
        (
            "feed.log",
            "a log\n",
            "FILE: the name has no known format, nothing was landed; name it .jsonl, "
            ".ndjson, .json or .csv (or these with .gz), or .parquet",
        ),
    ],
)
def test_a_file_is_told_by_what_it_holds(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    file = write(tmp_path / name, content)
    assert told(file) == message.replace("FILE", str(file))


def test_parquet_is_told_under_another_name(tmp_path: Path) -> None:
    file = write(tmp_path / "feed.jsonl", parquet(tmp_path / "feed.parquet"))
    assert told(file) == (
        f"{file} holds Parquet, not what its name says, nothing was landed: name it .parquet"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("feed.csv", HEADER.replace(";", ",")),
        # rows of the file are rejected one by one, with their reasons
        ("feed.csv", "id,when\n1,2\n"),
        ("feed.csv", ""),
        ("feed.jsonl", "nonsense\n"),
        ("feed.jsonl", ""),
        ("feed.json", '[{"delivery_id": "a"}]'),
    ],
)
def test_a_file_that_may_be_what_its_name_says_is_read(
    tmp_path: Path, name: str, content: str
) -> None:
    check_readable(write(tmp_path / name, content), COLUMNS)


# ---------- JSON arrays


def rows_of(file: Path) -> list[tuple[Any, ...]]:
    return [
        (row, line, text, fault and (fault.reason, fault.message))
        for batch in read_batches(file)
        for row, line, text, fault in zip(
            batch.rows, batch.lines, batch.raw_texts, batch.faults, strict=True
        )
    ]


def test_the_rows_of_an_array_are_those_of_lines(tmp_path: Path) -> None:
    some = [{"delivery_id": str(n), "document": 'a "[{" b'} for n in range(3)]
    lines = write(tmp_path / "lines.jsonl", "".join(json.dumps(row) + "\n" for row in some))
    on_lines = [row for row, *_ in rows_of(lines)]
    for name, text in (
        ("short.json", json.dumps(some)),
        ("indented.json", json.dumps(some, indent=4)),
        ("between.jsonl", "\ufeff \n[ \n" + "\n,\n".join(map(json.dumps, some)) + "\n]\n"),
    ):
        assert [row for row, *_ in rows_of(write(tmp_path / name, text))] == on_lines == some
    assert rows_of(write(tmp_path / "empty.json", "[ ]")) == []


def test_an_array_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[{"delivery_id": "ż", "document": {"total": 70.10}},\n 12, {"uuid": "\\u00e4"}\n]'
    file = write(tmp_path / "feed.json", text)
    whole = rows_of(file)
    assert [(line, text) for _, line, text, _ in whole] == [
        (1, '{"delivery_id": "ż", "document": {"total": 70.10}}'),
        (2, "12"),
        (2, '{"uuid": "\\u00e4"}'),
    ]
    assert whole[0][0] == {"delivery_id": "ż", "document": '{"total": 70.10}'}
    assert whole[1][3] == ("NOT_JSON", "the element is not a JSON object but 12")
    for size in (1, 2, 7):
        monkeypatch.setattr("dbt_exactly_once.landing.json_rows.PIECE_BYTES", size)
        assert rows_of(file) == whole, size


def test_an_element_that_is_no_utf8_stops_no_other(tmp_path: Path) -> None:
    file = write(tmp_path / "feed.json", b'[{"a": "\xff"},\n{"a": "b"}]')
    assert rows_of(file) == [
        (None, 1, '{"a": "\\xff"}', ("NOT_UTF8", "byte 8 of the row, 0xff, is not UTF-8")),
        ({"a": "b"}, 2, '{"a": "b"}', None),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"a": 1},\n{"a": ]', "line 2: not JSON: Expecting value"),
        ('[{"a": 1},\n{"a": NaN}]', "line 2: not JSON: NaN is not a value of JSON"),
        ('[{"a": 1}\n{"a": 2}]', "line 2: ] is missing in the array, there is {"),
        ('[{"a": 1},\n', "line 2: not JSON: Expecting value"),
        ('[{"a": 1}', "line 1: ] is missing in the array, there is the end of the file"),
        ('[{"a": 1}]\n{"a": 2}', "line 2: there is more behind the array"),
    ],
)
def test_a_broken_array_is_told_by_its_line(tmp_path: Path, text: str, why: str) -> None:
    file = write(tmp_path / "feed.json", text)
    with pytest.raises(ExactlyOnceError) as error:
        rows_of(file)
    assert error.value.msg == f"{file} cannot be read, nothing was landed: {why}"


def test_a_brace_that_is_not_closed_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_arrays, "ELEMENT_LIMIT", 1000)
    monkeypatch.setattr("dbt_exactly_once.landing.json_rows.PIECE_BYTES", 100)
    read = 0

    def texts(path: Path, original: Callable[[Path], Any]) -> Any:
        nonlocal read
        for text in original(path):
            read += len(text)
            yield text

    original = json_rows._texts
    monkeypatch.setattr(json_rows, "_texts", lambda path: texts(path, original))
    file = write(tmp_path / "feed.json", '[{"a": 1}, {"a": "' + "x" * 100_000)
    with pytest.raises(ExactlyOnceError, match="line 1: not JSON: Unterminated string"):
        rows_of(file)
    assert read < 5000


# ---------- what a landing says


def test_a_landing_says_what_it_has_rejected_and_where_it_is() -> None:
    landing = Landing(
        "deliveries",
        landed=2,
        reasons={"NOT_JSON": 2, "REPEATED": 4},
        examples=["f.jsonl, line 3: NOT_JSON: the line is not JSON"],
        rows_behind="select * from landing.rejected_landings",
    )
    assert landing.lines() == [
        "deliveries: landed 2, rejected 2 (NOT_JSON 2), repeated 4",
        "  f.jsonl, line 3: NOT_JSON: the line is not JSON",
        "  and 1 more",
        "they are kept; to see them: dbt show --limit -1 --inline "
        '"select * from landing.rejected_landings"',
    ]
    assert not landing.failed


@pytest.mark.parametrize(
    ("landed", "reasons", "failed"),
    [
        (0, {"NOT_JSON": 1}, True),
        (0, {"NOT_JSON": 1, "REPEATED": 1}, True),
        (0, {"REPEATED": 3}, False),
        (0, {}, False),
        (1, {"NOT_JSON": 1}, False),
    ],
)
def test_a_landing_fails_where_rows_were_rejected_and_none_has_landed(
    landed: int, reasons: dict[str, int], failed: bool
) -> None:
    landing = Landing("deliveries", landed, reasons)
    assert landing.failed is failed
    if not landing.rejected:
        assert landing.lines() == [str(landing)]


def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"feed-\xff.jsonl")
    assert told(write(path, '{"delivery_id": "a"}\n')) == (
        f"{tmp_path}/feed-\\xff.jsonl: the name is not UTF-8, nothing was landed: give the file "
        "another one"
    )


def test_a_time_beyond_all_years_is_a_fault_of_its_row(tmp_path: Path) -> None:
    """One of milliseconds is not what is left of it in microseconds."""
    last = 2**63 - 1
    table = pa.table(
        {
            "delivery_id": ["a", "b"],
            "received_at": pa.array([last, 1_772_359_200_123], pa.timestamp("ms")),
            "seen": pa.array([None, 1], pa.timestamp("ms", tz="Nowhere/Never")),
        }
    )
    pq.write_table(table, tmp_path / "feed.parquet")
    (first, *_), (second, *_, fault) = rows_of(tmp_path / "feed.parquet")
    with pytest.raises(NotOfTypeError):
        typed("timestamp", first["received_at"])
    assert typed("timestamp", second["received_at"]).microsecond == 123_000
    assert fault is None


def test_rows_nested_too_deep_stop_no_other(tmp_path: Path) -> None:
    deep = [json.dumps({"delivery_id": "a"})]
    deep += [
        f'{{"uuid": {"[" * depth}{"]" * depth}, "document": {"[" * depth}{"]" * depth}}}'
        for depth in range(700, 1000)
    ]
    path = write(tmp_path / "feed.jsonl", "\n".join(deep))
    batches = [*read_batches(path)]
    for batch in batches:
        typed_column("uuid", "string", batch.rows, batch.faults)
    reasons = {fault and fault.reason for batch in batches for fault in batch.faults}
    assert reasons == {None, "NOT_JSON", "WRONG_TYPE"}


def test_what_a_reader_stumbles_over_is_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(path: Path) -> Any:
        raise OverflowError("too large")

    monkeypatch.setattr(files, "json_rows", stumble)
    path = write(tmp_path / "feed.jsonl", "{}")
    with pytest.raises(ExactlyOnceError, match=r"feed.jsonl cannot be read, .*: too large"):
        rows_of(path)
