"""A lake of a given size for benchmarks: history that is live and expired, and what rivals keep.

It is made once per size. The size counts entries: two for a document, in one row of history_ledger,
as runs write them. The same documents are in `rivals.processed`, a table as people write it.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.dbt_commands import dbt, parse
from dbt_exactly_once.adapter.session import find_project, open_session, read_credentials
from dbt_exactly_once.adapter.startup import COMPILE_NOTHING_TWICE, JAVA_OPTIONS

PROJECT = Path(__file__).parents[1]
TRIGGER = "orders"
TTL_HOURS = 24
# ledgers whose rows stay
GROWING = ("history_ledger", "document_status", "journal_entries", "published_runs")
# event time of the runs; live entries expire in the day after it
NOW = "2026-01-02 00:00:00"
KEY = "concat_ws('-', substr(md5({0}), 1, 8), substr(md5({0}), 9, 4), substr(md5({0}), 13, 20))"
HASH = (
    "cast(conv(substring(sha2(concat(trigger_id, document_key), 256), {}, 16), 16, -10) as bigint)"
)


@dataclass
class Lake:
    """A lake in a folder of its own, with a session and a project with triggers for it."""

    folder: Path
    live: int
    expired: int
    spark: SparkSession
    catalog: str
    parsed: Any = None
    batch: int = 0

    @classmethod
    def open(
        cls, place: Path, live: int, expired: int, settings: dict[str, str], part: str = ""
    ) -> Lake:
        """The lake of these sizes, or a part's own one, made if it does not exist yet."""
        folder = place / (part or f"{live}-{expired}")
        # one session has all lakes, each as a catalog of its own
        catalog = f"lake_{folder.name.replace('-', '_')}"
        made = folder / "made"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        write_project(folder, catalog, settings)
        credentials = read_credentials(find_project(folder), folder)
        lake = cls(folder, live, expired, open_session(credentials), catalog)
        if not made.exists():
            lake._make()
            made.touch()
        # finish what an interrupted benchmark has left
        lake.run("seed")
        lake.run("run", "--select", "tag:transaction")
        lake._forget_runs()
        return lake

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        self.spark.catalog.setCurrentCatalog(self.catalog)
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def run(self, *command: str) -> dict[str, tuple[float, float]]:
        """A dbt command in this process; returns when each of its nodes began and ended."""
        self.spark.catalog.setCurrentCatalog(self.catalog)
        place = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        if self.parsed is None:
            self.parsed = parse(place)
        done = dbt([*command, *place, "--quiet"], self.parsed)
        if done.failures:
            raise RuntimeError(f"dbt {' '.join(command)} failed: {done.failures}")
        # the results of an operation have no times
        is_operation = command[0] == "run-operation"
        results = [] if is_operation else getattr(done.result.result, "results", [])
        return {
            item.node.name: (
                min(timing.started_at for timing in item.timing).timestamp(),
                max(timing.completed_at for timing in item.timing).timestamp(),
            )
            for item in results
            if item.timing
        }

    def land(
        self,
        number: int,
        known: float = 0.1,
        second: int = 0,
        keys: int | None = None,
        document_type: str = "order",
    ) -> None:
        """Land deliveries, a part of them copies of live documents; keys: of so many documents."""
        batch = self.sql("select count(*) from landing.deliveries.snapshots")[0][0]
        self.batch = batch
        new = f"concat('n{batch}-', {'id' if keys is None else f'id % {keys}'})"
        old = f"cast(pmod(xxhash64(id, {batch}), {max(self.live // 2, 1)}) as string)"
        key = f"if(id % 1000 < {int(known * 1000)}, {old}, {new})"
        values = {
            "delivery_id": f"concat('b{batch}-', id)",
            "received_at": f"timestamp '{NOW}' + make_dt_interval(0, 0, 0, {second} + id / 1e6)",
            "landed_at": "current_timestamp()",
            "transport": "'RABBITMQ'",
            "document_type": f"'{document_type}'",
            "guaranteed": "true",
            "uuid": KEY.format(key),
            "redelivery_count": f"if(id % 1000 < {int(known * 1000)}, 1, 0)",
            "document": f'concat(\'{{"number": \', id, \', "text": "{"x" * 300}"}}\')',
        }
        listed = ", ".join(values.values())
        self.sql(
            f"insert into landing.deliveries ({', '.join(values)}) "
            f"select {listed} from range(0, {number}, 1, 4)"
        )

    def take(self, others: Mapping[str, str]) -> None:
        """Make triggers for other document types, each with its service or none ("")."""
        write_triggers(self.folder, others)
        self.parsed = None
        self.run("seed")

    def _make(self) -> None:
        self.run("seed")
        # makes the landed tables
        self.run("run")
        self.land(1)
        self.run("run")
        self._fill("live", self.live // 2, 0)
        self._fill("expired", self.expired // 2, TTL_HOURS)
        self._record_import("history_ledger")

    def add_commits(self, number: int, ledgers: Sequence[str]) -> None:
        """Commit to ledgers as so many runs do: each adds a small file with one row of long ago.

        A ledger without rows, and one that each run rewrites, gets snapshots only.
        """
        load = self.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        for ledger in ledgers:
            name = f"{self.catalog}.exactly_once.{ledger}"
            files = []
            if ledger in GROWING and self.sql(f"select 1 from {name} limit 1"):
                columns = ", ".join(
                    f"timestamp '2020-01-01' as {field.name}"
                    if field.dataType.typeName() == "timestamp"
                    else field.name
                    for field in self.spark.table(name).schema
                )
                self.sql(f"insert into {name} select {columns} from {name} limit 1")
                table = load(self.spark._jsparkSession, name)
                files = list(table.currentSnapshot().addedDataFiles(table.io()))
            table = load(self.spark._jsparkSession, name)
            for _ in range(number - len(files)):
                commit = table.newAppend()
                for file in files:
                    commit.appendFile(file)
                commit.commit()
            if ledger != "published_runs":
                self._record_import(ledger)

    def _forget_runs(self) -> None:
        """Delete from history what earlier benchmarks decided, so that the lake keeps its size."""
        self.sql("delete from exactly_once.history_ledger where run_id != 'history'")
        self._record_import("history_ledger")

    def _record_import(self, ledger: str) -> None:
        """Publish what was added after the last publication: write the row of an import."""
        record = "exactly_once.published_runs"
        main = self.sql(f"select snapshot_id from exactly_once.{ledger}.refs where name = 'main'")
        changed = {
            "run_id": "uuid()",
            "kind": "'import'",
            "publication_number": "publication_number + 1",
            **dict.fromkeys(("taken", "decided", "waiting", "unrouted", "rejected"), "0L"),
            "ledger_starts": "ledger_publishes",
            "ledger_publishes": "map_concat(map_filter(ledger_publishes, (name, main) -> "
            f"name != '{ledger}'), map('{ledger}', '{main[0][0]}'))",
        }
        names = [field.name for field in self.spark.table(f"{self.catalog}.{record}").schema]
        self.sql(
            f"insert into {record} ({', '.join(names)}) "
            f"select {', '.join(changed.get(name, name) for name in names)} from {record} "
            f"where publication_number = (select max(publication_number) from {record}) limit 1"
        )

    def fill_processed(self, documents: int) -> None:
        """Recreate `rivals.processed` with the documents of live entries, and nothing else."""
        self.sql("create namespace if not exists rivals")
        self.sql(
            "create or replace table rivals.processed using iceberg as select "
            f"{KEY.format('cast(id as string)')} as uuid, timestamp '{NOW}' - "
            f"make_dt_interval(0, 0, 0, 1 + id % {TTL_HOURS * 3600 - 10}) as received_at "
            f"from range({documents})"
        )

    def _fill(self, kind: str, documents: int, hours_before: int, step: int = 10_000_000) -> None:
        """Documents in hours of the day before NOW (live) or of the days before that."""
        self.sql("create namespace if not exists rivals")
        self.sql(
            "create table if not exists rivals.processed (uuid string, received_at timestamp, "
            "delivery_id string) using iceberg partitioned by (hours(received_at))"
        )
        first = 0 if kind == "live" else self.live // 2
        for start in range(first, first + documents, step):
            end = min(start + step, first + documents)
            # each step of expired documents is on a day of its own
            days = hours_before // TTL_HOURS + ((start - first) // step if hours_before else 0)
            self.sql(
                f"""
                create or replace temporary view documents as
                select
                    base64(unhex(sha1('{TRIGGER}'))) as trigger_id,
                    '{TRIGGER}' as trigger_name,
                    {KEY.format("cast(id as string)")} as document_key,
                    timestamp '{NOW}' - make_dt_interval({days}, 0, 0, 1)
                    - make_dt_interval(0, 0, 0, (id % {TTL_HOURS * 3600 - 10})) as started_at,
                    concat('h-', id) as delivery_id,
                    'history' as run_id
                from range({start}, {end}, 1, 8)
                """
            )
            self.sql(
                f"""
                insert into exactly_once.history_ledger (
                    trigger_name, document_key, has_processing, has_completed, started_at,
                    expires_at, delivery_id, run_id, key_hash, key_check
                )
                select
                    trigger_name, document_key, true, true, started_at,
                    started_at + interval {TTL_HOURS} hours, delivery_id, run_id,
                    {HASH.format(1)}, {HASH.format(17)}
                from documents
                """
            )
            self.sql(
                "insert into rivals.processed "
                "select document_key, started_at, delivery_id from documents"
            )


def write_project(
    folder: Path, catalog: str, settings: dict[str, str], many_runs: bool = True
) -> None:
    """The project with triggers for benchmarks, and a profile that leads to this lake.

    many_runs: for a session of many large runs, Java may use its second compiler.
    """
    for name in ("models", "macros", "tests", "selectors.yml", "python_udfs"):
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(PROJECT / name)
    shutil.copytree(PROJECT / "seeds", folder / "seeds", dirs_exist_ok=True)
    project = yaml.safe_load((PROJECT / "dbt_project.yml").read_text())
    # keeps expired history, so that its cost is seen
    project["vars"]["allowed_lateness_ms"] = 10**12
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    write_triggers(folder, {})
    profile = yaml.safe_load((PROJECT / "profiles.example.yml").read_text())
    parameters = profile["exactly_once"]["outputs"]["local"]["server_side_parameters"]
    for name, value in list(parameters.items()):
        if "EXACTLY_ONCE_LAKE" in value:
            prefix = "jdbc:sqlite:" if value.startswith("jdbc:sqlite:") else ""
            parameters[name] = f"{prefix}{folder}/{value.rsplit('/', 1)[1]}"
        if name.startswith("spark.sql.catalog.lake"):
            own = name.replace("spark.sql.catalog.lake", f"spark.sql.catalog.{catalog}")
            parameters[own] = parameters.pop(name)
    if many_runs:
        options = parameters[JAVA_OPTIONS]
        parameters[JAVA_OPTIONS] = options.replace(COMPILE_NOTHING_TWICE, "")
    parameters.update({"spark.sql.defaultCatalog": catalog, **settings})
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))


def write_triggers(folder: Path, others: Mapping[str, str]) -> None:
    """Seeds with the trigger of the benchmarks, and one for each other document type."""
    services = {"order": "", **others}
    names = {kind: TRIGGER if kind == "order" else f"takes_{kind}" for kind in services}
    settings = {
        "detect_duplicates": "true",
        "use_history": "true",
        "history_time_to_live_ms": str(TTL_HOURS * 3_600_000),
    }
    _seed(folder, "triggers", [{"trigger_name": name, **settings} for name in names.values()])
    _seed(
        folder,
        "trigger_conditions",
        [
            {
                "trigger_name": names[kind],
                "position": "1",
                "condition_name": "all",
                "document_type": kind,
                "service": service,
            }
            for kind, service in services.items()
        ],
    )


def _seed(folder: Path, name: str, rows: Sequence[Mapping[str, str]]) -> None:
    with (PROJECT / "seeds" / f"{name}.csv").open() as file:
        columns = next(csv.reader(file))
    with (folder / "seeds" / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
