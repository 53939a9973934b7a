"""Drives the project end to end: writes seeds, lands rows, runs dbt in this process, reads tables.

Every test has a folder, schemas and a landing schema of its own in the shared session's lake.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from dbt.cli.main import dbtRunnerResult
from dbt.contracts.files import FileHash
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import SeedNode
from dbt.parser.manifest import extended_mashumaro_encoder, extended_mashumuro_decoder
from dbt_common.clients.system import load_file_contents
from faults import set_clock
from pyspark.sql import DataFrame, SparkSession

from dbt_exactly_once.adapter.dbt_commands import dbt, failed_nodes, parse
from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.landing.landed_tables import read_landed_tables

PROJECT_FOLDER = Path(__file__).parents[2]
# the commit record stands last
LEDGERS = [
    "history_ledger",
    "document_status",
    "open_documents",
    "waiting_deliveries",
    "trigger_states",
    "journal_entries",
    "rejected_deliveries",
    "published_runs",
]
# the target of profiles.example.yml that dbt and the shared session use
TARGET = os.environ.get("EXACTLY_ONCE_TEST_TARGET", "local")
LINKED = ("models", "macros", "tests", "docs", "selectors.yml")
# what dbt has parsed of the project as it is, by target: the name in its schemas, and all of it
_parsed_before: dict[str, tuple[str, bytes]] = {}


class DbtRuns:
    """One project folder with seeds of its own."""

    def __init__(
        self, spark: SparkSession, profiles_dir: Path, folder: Path, target: str = TARGET
    ) -> None:
        self.spark = spark
        self._target = target
        self._name = uuid4().hex[:10]
        self.schema = f"eo_{self._name}"
        self.landing = f"landing_{self._name}"
        self.folder = folder
        self._log = folder / "process.log"
        # what the last command said of its errors; an operation's result does not hold them
        self.errors: list[str] = []
        self._manifest: Manifest | None = None
        # a file of the project is not what it is for other tests
        self._differs = False
        for linked in LINKED:
            if (PROJECT_FOLDER / linked).exists():
                (folder / linked).symlink_to(PROJECT_FOLDER / linked)
        shutil.copytree(PROJECT_FOLDER / "seeds", folder / "seeds")
        self._write_project()
        self._write_profile(profiles_dir, target)
        self._make_landed_tables()

    def _write_project(self) -> None:
        project = yaml.safe_load((PROJECT_FOLDER / "dbt_project.yml").read_text())
        project["vars"]["landing_schema"] = self.landing
        (self.folder / "dbt_project.yml").write_text(yaml.safe_dump(project))

    def _write_profile(self, profiles_dir: Path, target: str) -> None:
        profile = yaml.safe_load((profiles_dir / "profiles.yml").read_text())
        profile["exactly_once"]["target"] = target
        profile["exactly_once"]["outputs"][target]["schema"] = self.schema
        (self.folder / "profiles.yml").write_text(yaml.safe_dump(profile))

    def _make_landed_tables(self) -> None:
        self.spark.sql(f"create namespace if not exists {self.landing}")
        for table in read_landed_tables(find_project(self.folder)).values():
            self.spark.sql(table.ddl())

    def seed(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a seed; missing columns and None are blank."""
        path = self.folder / "seeds" / f"{name}.csv"
        with (PROJECT_FOLDER / "seeds" / f"{name}.csv").open(encoding="utf-8") as file:
            columns = next(csv.reader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            for row in rows:
                writer.writerow({key: _text(row.get(key)) for key in columns})

    def add_udfs(self, module: str, text: str | None = None) -> None:
        """Put a module into the project's python_udfs: one of tests/python/udfs, or a text.

        FOLDER in it stands for the project's folder.
        """
        if text is None:
            text = (Path(__file__).parent / "udfs" / f"{module}.py").read_text(encoding="utf-8")
        folder = self.folder / "python_udfs"
        folder.mkdir(exist_ok=True)
        text = text.replace("FOLDER", str(self.folder))
        (folder / f"{module}.py").write_text(text, encoding="utf-8")

    def land(self, table: str, rows: Sequence[Any]) -> None:
        """Append rows (mappings or dataclasses) to a landed table as any writer may."""
        if not rows:
            return
        schema = self.spark.table(f"{self.landing}.{table}").schema
        frame = self.spark.createDataFrame(
            [tuple(_as_mapping(row).get(name) for name in schema.names) for row in rows], schema
        )
        frame.coalesce(1).writeTo(f"{self.landing}.{table}").append()

    def dbt(
        self,
        *arguments: str,
        clock: datetime | None = None,
        variables: Mapping[str, Any] | None = None,
        operation: str | None = None,
        arguments_of_operation: Mapping[str, Any] | None = None,
        quiet: bool = True,
    ) -> dbtRunnerResult:
        """Run a dbt command, with its clock at a time of the test's."""
        if operation:
            arguments += (operation, "--args", json.dumps(dict(arguments_of_operation or {})))
        more = ["--vars", json.dumps(dict(variables))] if variables else []
        more += ["--quiet"] if quiet else []
        with _clock_at(clock):
            outcome = dbt([*arguments, *more, *self.place], self._parsed())
        self.errors = outcome.errors
        return outcome.result

    @property
    def place(self) -> list[str]:
        """The options of a command that say where the project is."""
        return ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]

    def _parsed(self) -> Manifest:
        """The project as dbt has parsed it, with the seeds that are there now."""
        if self._manifest is None:
            self._manifest = parse(self.place) if self._differs else self._named_anew()
        seeds = [node for node in self._manifest.nodes.values() if isinstance(node, SeedNode)]
        texts = [load_file_contents(str(self.folder / s.original_file_path)) for s in seeds]
        checksums = [FileHash.from_contents(text) for text in texts]
        if [seed.checksum for seed in seeds] != checksums:
            for seed, checksum in zip(seeds, checksums, strict=True):
                seed.checksum = checksum
            # what macros see of it
            self._manifest.build_flat_graph()
        return self._manifest

    def graph(self) -> dict[str, Any]:
        """The project as macros see it."""
        return self._parsed().flat_graph

    def _named_anew(self) -> Manifest:
        """What dbt has parsed for another test, with this one's names.

        Parsing takes as long as a third of a run, and dbt knows how to pack what it has parsed.
        """
        if self._target not in _parsed_before:
            packed = parse(self.place).to_msgpack(extended_mashumaro_encoder)
            _parsed_before[self._target] = self._name, packed
        name, packed = _parsed_before[self._target]
        packed = packed.replace(name.encode(), self._name.encode())
        manifest = Manifest.from_msgpack(packed, decoder=extended_mashumuro_decoder)
        for node in manifest.nodes.values():
            if isinstance(node, SeedNode):
                node.root_path = str(self.folder)
        manifest.build_flat_graph()
        return manifest

    def own(self, linked: str) -> Path:
        """A folder of the project as a copy that a test may change."""
        place = self.folder / linked
        if place.is_symlink():
            place.unlink()
            shutil.copytree(PROJECT_FOLDER / linked, place)
        self.forget_parsed()
        return place

    def give_back(self, linked: str) -> None:
        """The project's folder again, in the place of a copy of the test's own."""
        place = self.folder / linked
        if not place.is_symlink():
            shutil.rmtree(place)
            place.symlink_to(PROJECT_FOLDER / linked)
            self.forget_parsed()

    def forget_parsed(self) -> None:
        """Parse anew at the next command, since a file of the project was changed."""
        self._manifest = None
        self._differs = True

    def run(self, *arguments: str, **options: Any) -> dbtRunnerResult:
        """A dbt command that must succeed."""
        result = self.dbt(*arguments, **options)
        assert result.success, _why(result)
        return result

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A dbt command as a process with a group of its own."""
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [Path(sys.executable).parent / "dbt", *arguments, "--project-dir", self.folder],
                cwd=PROJECT_FOLDER,
                env={**os.environ, "DBT_PROFILES_DIR": str(self.folder)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self) -> str:
        """What the last process has said so far."""
        return self._log.read_text(encoding="utf-8")

    def kill_when(self, process: subprocess.Popen[bytes], comes: Callable[[], bool]) -> None:
        """End a process and all it has started, at once, when something has come."""
        deadline = time.monotonic() + 400
        while not comes():
            assert process.poll() is None, self.said()[-2000:]
            assert time.monotonic() < deadline, self.said()[-2000:]
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def decide(self, **options: Any) -> dbtRunnerResult:
        """A run of the transaction alone, without tests and views for people."""
        # writing down all that was parsed would take as long as five statements
        return self.run("run", "--select", "tag:transaction", "--no-write-json", **options)

    def table(self, name: str) -> DataFrame:
        """A table or view of the project's schema."""
        return self.spark.table(f"{self.schema}.{name}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query in which {schema} and {landing} stand for the schemas."""
        text = sql.format(schema=self.schema, landing=self.landing)
        return [tuple(row) for row in self.spark.sql(text).collect()]


def failures(result: dbtRunnerResult) -> list[str]:
    """The whole messages of what failed in a dbt command."""
    found = [str(result.exception)] if result.exception else []
    return found + [f"{name}: {message}" for name, message in failed_nodes(result)]


def _why(result: dbtRunnerResult) -> str:
    return "\n".join(failures(result))[:4000] or str(result)


@contextmanager
def _clock_at(clock: datetime | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if clock is not None:
            set_clock(patch, clock)
        yield


def _as_mapping(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    return {column.name: getattr(row, column.name) for column in fields(row)}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return str(value)
