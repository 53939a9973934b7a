"""Landing: files of rows become appends to a landed table, one commit a landing.

Python reads the files batch by batch into one staging file of typed columns; one Spark pass then
judges the rows and appends them. Rejected rows are appended first: a landing that is cut off
between the two is simply repeated, and a repetition is recognised.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq

from dbt_exactly_once.adapter.engine import literal
from dbt_exactly_once.adapter.lake_version import check_columns
from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.files import (
    ARROW_TYPES,
    Batch,
    check_readable,
    read_batches,
    typed_column,
)
from dbt_exactly_once.landing.landed_tables import (
    CONSUMED_TAG,
    MOVED,
    REJECTED,
    LandedTable,
    create_table_sql,
    read_landed_tables,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELIVERIES = "deliveries"
LANDED_AT = "landed_at"
REPEATED = "REPEATED"
CONFLICTING = "CONFLICTING"
MACROS = Path("macros/receive")
TRANSPORTS = Path("seeds/transports.csv")
PROGRESS_ROWS = 100_000


@dataclass
class Landing:
    """What became of the rows of one landing."""

    table: str
    landed: int = 0
    # rejected rows by reason; those that only repeat a landed row stand apart
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def repeated(self) -> int:
        return self.reasons.get(REPEATED, 0)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values()) - self.repeated

    def __str__(self) -> str:
        why = ", ".join(f"{k} {v}" for k, v in sorted(self.reasons.items()) if k != REPEATED)
        rejected = f"rejected {self.rejected}" + (f" ({why})" if why else "")
        return f"{self.table}: landed {self.landed}, {rejected}, repeated {self.repeated}"


def land(
    spark: SparkSession, project: Project, files: Iterable[str | Path], table: str = DELIVERIES
) -> Landing:
    """Append the rows of the files to a landed table; all of them or, where it fails, none."""
    tables = read_landed_tables(project.package_folder)
    target = tables[table]
    paths = [Path(file) for file in files]
    for path in paths:
        check_readable(path)
    breach, messages = _contract(project, target)
    content = _macro(project.package_folder, "delivery_content", columns=target.columns)
    relation, rejected = (f"{project.landing_schema}.{name}" for name in (table, REJECTED))
    spark.sql(f"create namespace if not exists {project.landing_schema}")
    if spark.catalog.tableExists(relation + MOVED):
        raise ExactlyOnceError(
            f"{relation} has moved to another catalog: name the target that leads to it"
        )
    for name, definition in ((relation, target), (rejected, tables[REJECTED])):
        spark.sql(create_table_sql(name, definition.columns, definition.partitioned_by))
        present = spark.table(name).columns
        check_columns(name, [column for column in definition.types if column not in present])

    landed_at = datetime.now(timezone.utc)
    with tempfile.TemporaryDirectory(prefix="exactly-once-landing-") as folder:
        staging = Path(folder) / "rows.parquet"
        stage(paths, target, staging)
        with _view(spark, spark.read.parquet(str(staging))) as staged:
            landed = _landed_sql(spark, project, staged, relation, target, breach, content)
            judged = spark.sql(_judged_sql(staged, landed, target, breach, content))
            judged.persist()
            try:
                with _view(spark, judged) as judgements:
                    return _append(
                        spark,
                        staged,
                        judgements,
                        relation,
                        rejected,
                        target,
                        tables[REJECTED],
                        messages,
                        landed_at,
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


# ---------- the contract


def _macro(project_folder: Path, name: str, **arguments: Any) -> str:
    """The SQL of a macro file that uses nothing of dbt."""
    text = (project_folder / MACROS / f"{name}.sql").read_text(encoding="utf-8")
    call = f"{{{{ {name}({', '.join(f'{key}={key}' for key in arguments)}) }}}}"
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    return environment.from_string(text + call).render(**arguments).strip()


def _contract(project: Project, target: LandedTable) -> tuple[str, dict[str, str]]:
    """The reason why a well-typed row breaks the contract, and what to say for each, as SQL."""
    id_column = target.id_column
    missing_id = f"MISSING_{id_column.upper()}"
    text_of_id = f"cast({id_column} as string)"
    messages = {
        missing_id: literal(f"{id_column} is missing"),
        REPEATED: f"concat('{id_column} ', {text_of_id}, ' has landed before, with this content')",
        CONFLICTING: (
            f"concat('{id_column} ', {text_of_id}, "
            "' has landed before with other content, which stays')"
        ),
    }
    if target.name != DELIVERIES:
        return (
            f"case when {id_column} is null or {id_column} = '' then '{missing_id}' end",
            messages,
        )
    messages |= {
        "RESERVED_ID": (
            "concat('delivery_id ', delivery_id, ' has /recovery- or /resubmission- in it, "
            "which the project gives')"
        ),
        "MISSING_RECEIVED_AT": literal("received_at is missing"),
        "MISSING_GUARANTEED": literal("guaranteed is missing"),
        "UNKNOWN_TRANSPORT": (
            "concat('transport ', coalesce(transport, 'null'), "
            f"{literal(f' is not one of {TRANSPORTS.as_posix()}')})"
        ),
    }
    known = ", ".join(literal(name) for name in _transports(project))
    breach = _macro(
        project.package_folder, "contract_breach", transport_known=f"transport in ({known})"
    )
    return breach, messages


def _transports(project: Project) -> list[str]:
    own = project.folder / TRANSPORTS
    file = own if own.is_file() else project.package_folder / TRANSPORTS
    try:
        with file.open(encoding="utf-8-sig", newline="") as file:
            names = [row["transport"].strip() for row in csv.DictReader(file) if row["transport"]]
    except (OSError, KeyError) as error:
        raise ExactlyOnceError(
            f"{TRANSPORTS} cannot be read, it says which transports are known: {error}"
        ) from error
    if not names:
        raise ExactlyOnceError(f"{TRANSPORTS} is empty: without a transport no delivery can land")
    return names


# ---------- judging


@contextmanager
def _view(spark: SparkSession, rows: Any) -> Iterator[str]:
    name = f"exactly_once_{uuid4().hex}"
    rows.createTempView(name)
    try:
        yield name
    finally:
        spark.catalog.dropTempView(name)


def _judged_sql(
    staged: str,
    landed: str,
    target: LandedTable,
    breach: str,
    content: str,
) -> str:
    """One row per staged row: its number and why it is rejected, null where it lands.

    Only ids and hashes are compared, never documents.
    """
    id_column = target.id_column
    return f"""
        with

        read as (
            select
                landing_row,
                {id_column} as row_id,
                {content} as content,
                coalesce(fault, {breach}) as breach
            from {staged}
        ),

        arrivals as (
            select
                *,
                row_number() over same_id as arrival,
                first_value(content) over same_id as first_content
            from read
            where breach is null
            window same_id as (partition by row_id order by landing_row)
        ),

        landed as ({landed})

        select landing_row, breach as reason
        from read
        where breach is not null

        union all

        select
            arrivals.landing_row,
            case
                when landed.row_id is null and arrivals.arrival = 1 then null
                when arrivals.content = coalesce(landed.content, arrivals.first_content)
                    then '{REPEATED}'
                else '{CONFLICTING}'
            end as reason
        from arrivals
        left join landed on arrivals.row_id = landed.row_id
    """


def _landed_sql(
    spark: SparkSession,
    project: Project,
    staged: str,
    relation: str,
    target: LandedTable,
    breach: str,
    content: str,
) -> str:
    """The ids of staged rows that have landed before, with the content of the first row of each.

    A row that breaks the contract, or that a run has rejected, does not shut out the right one.
    Whether there are any needs the id column alone; their content is read only on the days they
    were received on, so that a landing does not read all documents that ever landed.
    """
    id_column, day_column = target.id_column, target.day_column
    known = f"{id_column} in (select {id_column} from {staged})"
    times = f"unix_micros({day_column})" if day_column else "null"
    number, first, last = spark.sql(
        f"select count(*), min({times}), max({times}) from {relation} where {known}"
    ).first()
    # a row without its time breaks the contract
    if not number or (day_column and first is None):
        return "select cast(null as string) as row_id, cast(null as string) as content where false"
    if day_column:
        known += f" and {day_column} between timestamp_micros({first}) and timestamp_micros({last})"
    order = ", ".join([*([LANDED_AT] if LANDED_AT in target.types else []), "_file", "_pos"])
    rows = f"(select *, _file, _pos from {relation} where {known} and ({breach}) is null)"
    rejected = _rejected_texts(spark, relation, target)
    if rejected:
        text = _macro(project.package_folder, "delivery_as_json")
        rows += (
            f" left anti join ({rejected}) on delivery_id = rejected_id and {text} = rejected_text"
        )
    return f"""
        select {id_column} as row_id, min_by({content}, struct({order})) as content
        from {rows}
        group by {id_column}
    """


def _rejected_texts(spark: SparkSession, relation: str, target: LandedTable) -> str | None:
    """The landed rows that runs have rejected for what they say, as delivery_as_json gives them."""
    if target.name != DELIVERIES:
        return None
    # each schema of ledgers that has consumed the table has a tag there
    tags = spark.sql(
        f"select name from {relation}.refs where startswith(name, '{CONSUMED_TAG}')"
    ).collect()
    schemas = [name.removeprefix(CONSUMED_TAG) for (name,) in tags]
    return " union all ".join(
        "select delivery_id as rejected_id, raw_text as rejected_text "
        f"from {schema}.rejected_deliveries where reason not in ('{REPEATED}', '{CONFLICTING}')"
        for schema in schemas
        if spark.catalog.tableExists(f"{schema}.rejected_deliveries")
    )


# ---------- appending


def _append(
    spark: SparkSession,
    staged: str,
    judgements: str,
    relation: str,
    rejected: str,
    target: LandedTable,
    rejections: LandedTable,
    messages: dict[str, str],
    landed_at: datetime,
) -> Landing:
    counts: Counter[str | None] = Counter(
        dict(spark.sql(f"select reason, count(*) from {judgements} group by reason").collect())
    )
    landing = Landing(target.name, counts.pop(None, 0), dict(counts))
    time = f"timestamp '{landed_at:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if landing.reasons:
        said = "\n".join(f"when '{reason}' then {sql}" for reason, sql in messages.items())
        values = {
            "rejection_id": (
                f"sha2(concat_ws('|', unix_micros({time}), staged.landing_row, "
                "staged.source_line, staged.source_file), 256)"
            ),
            "table_name": literal(target.name),
            "delivery_id": "delivery_id" if "delivery_id" in target.types else "null",
            "reason": "judged.reason",
            "message": f"coalesce(staged.fault_message, case judged.reason {said} end)",
            "source_file": "source_file",
            "source_line": "source_line",
            "raw_text": "raw_text",
            LANDED_AT: time,
        }
        _write(
            spark.sql(
                f"""
                select {_selected(rejections, values)}
                from {staged} as staged
                inner join {judgements} as judged
                    on staged.landing_row = judged.landing_row and judged.reason is not null
                order by staged.landing_row
                """
            ),
            rejected,
        )
    if landing.landed:
        values = {name: name for name in target.types} | {LANDED_AT: time}
        # by partition and then as in the files: Iceberg's own shuffle would not keep that order
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
            relation,
        )
    return landing


def _selected(table: LandedTable, values: dict[str, str]) -> str:
    return ", ".join(f"cast({values[n]} as {t}) as {n}" for n, t in table.types.items())


def _write(rows: Any, relation: str) -> None:
    rows.writeTo(relation).option("use-table-distribution-and-ordering", "false").append()
