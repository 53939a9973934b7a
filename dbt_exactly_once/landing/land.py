"""Landing: files of rows become appends to a landed table, one commit a landing.

Python reads the files batch by batch into one staging file of typed columns; one Spark pass then
judges the rows and appends them. Rejected rows are appended first: a landing that is interrupted
between the two appends is repeated, and the repetition is recognised.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_exactly_once.adapter.engine import literal, time_literal
from dbt_exactly_once.adapter.lake_version import MOVED, check_columns
from dbt_exactly_once.adapter.macros import macro_result
from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.files import Batch, check_readable, read_batches
from dbt_exactly_once.landing.judging import (
    DELIVERIES,
    LANDED_AT,
    MACROS,
    REPEATED,
    contract,
    judged_sql,
    landed_sql,
)
from dbt_exactly_once.landing.landed_tables import REJECTED, LandedTable, read_landed_tables
from dbt_exactly_once.landing.outcome import Landing
from dbt_exactly_once.landing.values import ARROW_TYPES, typed_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRESS_ROWS = 100_000
SHOWN_REJECTIONS = 5


def land(
    spark: SparkSession, project: Project, files: Iterable[str | Path], table: str = DELIVERIES
) -> Landing:
    """Append the rows of the files to a landed table; all of them or, if that fails, none."""
    tables = read_landed_tables(project)
    target, rejections = tables[table], tables[REJECTED]
    paths = [Path(file) for file in files]
    for path in paths:
        check_readable(path, target.types)
    breach, messages = contract(project, target)
    columns = [{"name": name, "data_type": kind} for name, kind in target.types.items()]
    content = macro_result(project.package_folder, MACROS, "delivery_content", columns=columns)
    spark.sql(f"create namespace if not exists {project.landing_schema}")
    for written in (target, rejections):
        _refuse_moved(spark, written.relation)
        spark.sql(written.ddl())
        # a move to another catalog may have begun in between: rows in a new table would be lost
        _refuse_moved(spark, written.relation)
        present = spark.table(written.relation).columns
        check_columns(written.relation, [name for name in written.types if name not in present])

    landed_at = datetime.now(timezone.utc)
    with tempfile.TemporaryDirectory(prefix="exactly-once-landing-") as folder:
        staging = Path(folder) / "rows.parquet"
        stage(paths, target, staging)
        with _view(spark, spark.read.parquet(str(staging))) as staged:
            landed = landed_sql(spark, project, staged, target, breach, content)
            judged = spark.sql(judged_sql(staged, landed, target, breach, content))
            judged.persist()
            try:
                with _view(spark, judged) as judgements:
                    return _append(
                        spark, staged, judgements, target, rejections, messages, landed_at
                    )
            finally:
                judged.unpersist()


# ---------- staging


def stage(paths: Iterable[Path], target: LandedTable, staging: Path) -> None:
    """Write the rows of the files, typed and numbered, to one Parquet file."""
    types = {name: type_ for name, type_ in target.types.items() if name != LANDED_AT}
    schema = pa.schema(
        [
            ("landing_row", pa.int64()),
            *((name, ARROW_TYPES[type_]) for name, type_ in types.items()),
            ("source_file", pa.string()),
            ("source_line", pa.int64()),
            ("raw_text", pa.string()),
            ("fault", pa.string()),
            ("fault_message", pa.string()),
        ]
    )
    count = 0
    with pq.ParquetWriter(staging, schema, compression="zstd") as writer:
        for path in paths:
            unknown: set[str] = set()
            for batch in read_batches(path):
                arrays = [pa.array(range(count, count + len(batch.rows)), pa.int64())]
                arrays += [typed_column(n, t, batch.rows, batch.faults) for n, t in types.items()]
                arrays += _origin(batch, path)
                writer.write_batch(pa.record_batch(arrays, schema=schema))
                for row in batch.rows:
                    unknown.update(row or ())
                if (count + len(batch.rows)) // PROGRESS_ROWS > count // PROGRESS_ROWS:
                    _say(f"{path}: row {count + len(batch.rows):,} of the landing read")
                count += len(batch.rows)
            unknown -= {*types, LANDED_AT}
            if unknown:
                _say(
                    f"{path}: columns that {target.name} does not have are left out: "
                    f"{', '.join(sorted(map(repr, unknown))[:10])}"
                )


def _origin(batch: Batch, path: Path) -> list[pa.Array]:
    faults = batch.faults
    return [
        pa.array([str(path)] * len(batch.rows), pa.string()),
        pa.array(batch.lines, pa.int64()),
        pa.array(batch.raw_texts, pa.string()),
        pa.array([fault and fault.reason for fault in faults], pa.string()),
        pa.array([fault and fault.message for fault in faults], pa.string()),
    ]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---------- appending


@contextmanager
def _view(spark: SparkSession, rows: DataFrame) -> Iterator[str]:
    name = f"exactly_once_{uuid4().hex}"
    rows.createTempView(name)
    try:
        yield name
    finally:
        spark.catalog.dropTempView(name)


def _refuse_moved(spark: SparkSession, relation: str) -> None:
    if spark.catalog.tableExists(relation + MOVED):
        raise ExactlyOnceError(
            f"{relation} has moved to another catalog: name the target that leads to it"
        )


def _append(
    spark: SparkSession,
    staged: str,
    judgements: str,
    target: LandedTable,
    rejections: LandedTable,
    messages: dict[str, str],
    landed_at: datetime,
) -> Landing:
    counts: Counter[str | None] = Counter(
        dict(spark.sql(f"select reason, count(*) from {judgements} group by reason").collect())
    )
    landing = Landing(target.name, counts.pop(None, 0), dict(counts))
    time = time_literal(landed_at)
    if landing.reasons:
        rows = _rejected_rows(spark, staged, judgements, target, rejections, messages, time)
        _write(rows, rejections)
        if landing.rejected:
            landing.examples = _examples(rows)
        landing.rows_behind = (
            "select reason, message, source_file, source_line, raw_text "
            f"from {rejections.relation} where landed_at = {time}"
        )
    if landing.landed:
        values = {name: name for name in target.types} | {LANDED_AT: time}
        # by partition, then in the order of the files, which Iceberg's own shuffle would not keep
        day = f"floor(unix_seconds({target.day_column}) / 86400), " if target.day_column else ""
        _write(
            spark.sql(
                f"""
                select {_selected(target, values)}
                from {staged}
                where landing_row not in (
                    select landing_row from {judgements} where reason is not null
                )
                order by {day}landing_row
                """
            ),
            target,
        )
    return landing


def _rejected_rows(
    spark: SparkSession,
    staged: str,
    judgements: str,
    target: LandedTable,
    rejections: LandedTable,
    messages: dict[str, str],
    time: str,
) -> DataFrame:
    """The rejected rows, with the columns of the table of rejections."""
    written = "\n".join(f"when '{reason}' then {sql}" for reason, sql in messages.items())
    values = {
        "rejection_id": (
            f"sha2(concat_ws('|', unix_micros({time}), staged.landing_row, "
            "staged.source_line, staged.source_file), 256)"
        ),
        "table_name": literal(target.name),
        "delivery_id": "delivery_id" if "delivery_id" in target.types else "null",
        "reason": "judged.reason",
        "message": f"coalesce(staged.fault_message, case judged.reason {written} end)",
        "source_file": "source_file",
        "source_line": "source_line",
        "raw_text": "raw_text",
        LANDED_AT: time,
    }
    return spark.sql(
        f"""
        select {_selected(rejections, values)}
        from {staged} as staged
        inner join {judgements} as judged
            on staged.landing_row = judged.landing_row and judged.reason is not null
        order by staged.landing_row
        """
    )


def _examples(rejected: DataFrame) -> list[str]:
    """The first rejected rows, without repetitions, in words."""
    first = rejected.where(f"reason != '{REPEATED}'").limit(SHOWN_REJECTIONS)
    columns = ("source_file", "source_line", "reason", "message")
    return [
        f"{file}, line {line}: {reason}: {message}"
        for file, line, reason, message in first.select(*columns).collect()
    ]


def _selected(table: LandedTable, values: dict[str, str]) -> str:
    return ", ".join(f"cast({values[n]} as {t}) as {n}" for n, t in table.types.items())


def _write(rows: DataFrame, table: LandedTable) -> None:
    writer = rows.writeTo(table.relation)
    writer.option("use-table-distribution-and-ordering", "false").append()
