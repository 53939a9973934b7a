"""A lake that real processes work on, and what can be seen of them from outside."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml
from faults import EFFECTS, HAPPENED, LEDGERS
from pyiceberg.catalog import load_catalog
from reference_model import Condition, Trigger

PROJECT_FOLDER = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
SCHEMA = "exactly_once"
LINKED = ("models", "macros", "tests", "python_udfs", "selectors.yml")
STATUS = ("delivery_id", "trigger_name", "status", "rule_id", "document_key", "matched_delivery_id")
LAND, DECIDE = ("land",), ("build", "--selector", "hot_path")
# all of them are loaded, not those alone that have changed
SEED = ("seed", "--full-refresh")
UPKEEP = ("run-operation", "maintain")
STAGE_OF_COMMAND = {LAND: "landing", SEED: "seeds", UPKEEP: "upkeep"}
# the variables of a run that ends with upkeep, which keeps nothing of earlier states
WITH_UPKEEP = {"maintain_every_runs": 1, "keep_snapshots_hours": 0}

TYPES = ("order.created", "order.cancelled", "invoice.issued", "shipment.dispatched")
BY_HISTORY = Trigger("orders_by_history", detect_duplicates=True, use_history=True)
TRIGGERS = (
    BY_HISTORY,
    Trigger("orders_by_count", detect_duplicates=True),
    replace(
        BY_HISTORY,
        trigger_name="orders_booked",
        processing_mode="concurrent",
        # over before a run is: what a killed one has left is known all the same
        execution_timeout_ms=1,
    ),
)
SERVICE = "book_order"
CONDITIONS = (
    *(
        Condition(trigger.trigger_name, position, kind, kind)
        for trigger in TRIGGERS[:2]
        for position, kind in enumerate(TYPES, start=1)
    ),
    Condition("orders_booked", 1, "created", TYPES[0], service=SERVICE),
)
BOOKED = f"""
{{{{ config(materialized='service', tags=['service'], meta={{'service': '{SERVICE}'}}) }}}}
select delivery_id, trigger_name from {{{{ work() }}}}
"""


class Lake:
    """A project folder with a lake of its own, and the commands that work on it."""

    def __init__(self, folder: Path, pieces: Sequence[Path]) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        self.log = folder / "log.txt"
        self._left = list(pieces)
        self.landed: list[Path] = []
        self.landed_at: int | None = None
        folder.mkdir(parents=True)
        for linked in LINKED:
            (folder / linked).symlink_to(PROJECT_FOLDER / linked)
        shutil.copy(PROJECT_FOLDER / "profiles.example.yml", folder / "profiles.yml")
        project = yaml.safe_load((PROJECT_FOLDER / "dbt_project.yml").read_text())
        project["model-paths"] = ["models", "services"]
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        (folder / "services").mkdir()
        (folder / "services" / "booked_orders.sql").write_text(BOOKED)
        shutil.copytree(PROJECT_FOLDER / "seeds", folder / "seeds")
        self._write_seed("triggers", map(asdict, TRIGGERS))
        self._write_seed("trigger_conditions", map(asdict, CONDITIONS))

    def _write_seed(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        path = self.folder / "seeds" / f"{name}.csv"
        with path.open(encoding="utf-8") as file:
            columns = next(csv.reader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def start(
        self, *arguments: str, faults: Mapping[str, str] | None = None, **variables: Any
    ) -> subprocess.Popen[bytes]:
        """Start a command: `land FILE`, or one of dbt's, in which faults may happen."""
        program = [str(PROGRAMS / ("exactly-once" if arguments[0] == "land" else "dbt"))]
        if faults:
            program = [sys.executable, str(Path(__file__).parent / "faults.py"), json.dumps(faults)]
        command = [*program, *arguments, "--project-dir", str(self.folder)]
        if variables:
            command += ["--vars", json.dumps(variables)]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={
                    **os.environ,
                    "EXACTLY_ONCE_LAKE": str(self.lake),
                    "DBT_PROFILES_DIR": str(self.folder),
                    "DBT_TARGET_PATH": str(self.folder / "target"),
                    "DBT_LOG_PATH": str(self.folder / "logs"),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def finish(self, *arguments: str, **options: Any) -> None:
        """Run a command that must succeed."""
        process = self.start(*arguments, **options)
        if process.wait() != 0:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{self.said()[-3000:]}")

    def said(self, since: int = 0) -> str:
        """What the commands have said, from a place of the log on."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")

    def faults(self) -> Counter[str]:
        """The faults that have happened."""
        lines = self.said().splitlines()
        return Counter(x.removeprefix(HAPPENED).strip() for x in lines if x.startswith(HAPPENED))

    def next_piece(self) -> Path:
        """The next piece of the feed, to be landed now."""
        self.landed.append(self._left.pop(0))
        self.landed_at = mains(self).get("published_runs")
        return self.landed[-1]

    def land_where_all_is_decided(self) -> None:
        """Land the next piece, unless the last one is still to be decided, or none is left."""
        if not self._left:
            return
        if not self.landed or mains(self).get("published_runs") != self.landed_at:
            self.finish(*LAND, str(self.next_piece()))

    def land_rest(self) -> None:
        """Land what is left of the feed."""
        rest, self._left = self._left, []
        self.landed += rest
        self.finish(*LAND, *map(str, rest))

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, read without Spark."""
        catalog = load_catalog(
            "lake",
            type="sql",
            uri=f"sqlite:///{self.lake / 'catalog.db'}",
            warehouse=str(self.lake / "warehouse"),
        )
        return catalog.load_table(f"{SCHEMA}.{name}").scan().to_arrow().to_pylist()

    def history(self) -> list[dict[str, Any]]:
        """The entries of history, as the view document_history shows them."""
        return [
            {**row, "processing_status": status}
            for row in self.table("history_ledger")
            for status in ("processing", "completed")
            if row[f"has_{status}"]
        ]

    def rows(self, table: str, *columns: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table or of history, as far as they do not depend on the run."""
        rows = self.history() if table == "document_history" else self.table(table)
        return Counter(tuple(row[name] for name in columns) for row in rows)


class Watch:
    """Sees each change of a table in a lake, from outside, and at which stage a process is."""

    def __init__(self, lake: Lake, stage: str = "before any change") -> None:
        self._lake = lake
        self._seen = table_locations(lake)
        self._said = lake.log.stat().st_size if lake.log.exists() else 0
        self._is_audited = False
        self.stage = stage

    def changes(self) -> list[str]:
        """What has changed since the last call: the stage, and the change in words."""
        now, before = table_locations(self._lake), self._seen
        self._seen = now
        found = [_gone_in_words(name) for name in sorted(before.keys() - now.keys())]
        for name in sorted(now):
            if now[name] != before.get(name):
                found.append(_in_words(name, before.get(name), now[name]))
        return [f"{self._stage_after(change)}: {change}" for change in found if change]

    def _stage_after(self, change: str) -> str:
        """The stage that a `dbt build` has reached; that of other commands does not change."""
        name, _, happened = change.partition(" ")
        is_effect = name.startswith((*EFFECTS, "trigger_executions"))
        if self.stage not in DECIDING or self.stage == "upkeep of a run":
            return self.stage
        if happened == "compacted":
            self.stage = "upkeep of a run"
        elif happened == "written":
            self.stage = "branch writes"
        elif self.stage in ("branch writes", "tests") and happened == "published":
            self.stage = "publication"
        elif self.stage == "publication" and is_effect:
            self.stage = "effects"
        elif self.stage == "before any change" and name == "lock":
            self.stage = "takeover" if happened.startswith("taken") else "lock"
        elif self.stage in ("takeover", "lock") and (name in LEDGERS or is_effect):
            self.stage = "recovery"
        return self.stage

    def tests(self) -> bool:
        """Whether a test of the run's writes has just started, the first one."""
        if self.stage != "branch writes" or self._is_audited:
            return False
        self._is_audited = self.says("START test")
        if self._is_audited:
            self.stage = "tests"
        return self._is_audited

    def says(self, text: str) -> bool:
        """Whether a text was said since the watch began."""
        return text in self._lake.said(self._said)


DECIDING = (
    "before any change",
    "takeover",
    "lock",
    "recovery",
    "branch writes",
    "tests",
    "publication",
    "effects",
    "upkeep of a run",
)
LOCK = "run_lock"
# the list of a service's work has the id of its run in its name
WORK = "__work"


def _gone_in_words(name: str) -> str:
    if WORK in name:
        return f"{name.partition(WORK)[0]}{WORK} dropped"
    # a lock that is taken over, or given back, is renamed; a buried one is forgotten later
    return "lock taken from a dead run" if name == LOCK else "buried lock forgotten"


def _in_words(name: str, before: str | None, now: str) -> str:
    if name.startswith(LOCK):
        return "lock made" if name == LOCK else ""
    if WORK in name:
        return f"{name.partition(WORK)[0]}{WORK} made"
    old, new = _refs(before), _refs(now)
    if name in LEDGERS and old.get("main") != new.get("main"):
        return f"{name} {'compacted' if _is_compaction(now) else 'published'}"
    runs = {ref for ref in new if ref.startswith("run_")}
    if any(old.get(ref) != new[ref] for ref in runs):
        return f"{name} written"
    if len(old) > len(new):
        return f"{name} lost a branch"
    return f"{name} changed"


def table_locations(lake: Lake) -> dict[str, str]:
    """Where the catalog says that the metadata of each table is."""
    catalog = lake.lake / "catalog.db"
    while catalog.exists():
        try:
            with contextlib.closing(
                sqlite3.connect(f"file:{catalog}?mode=ro", uri=True, timeout=5)
            ) as connection:
                return dict(
                    connection.execute("select table_name, metadata_location from iceberg_tables")
                )
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                break
            # a writer was faster
            time.sleep(0.001)
    return {}


def _metadata(location: str | None) -> dict[str, Any]:
    if location is None:
        return {}
    try:
        return json.loads(Path(location.removeprefix("file:")).read_text())
    except (OSError, ValueError):
        return {}


def _refs(location: str | None) -> dict[str, int]:
    """The refs of a table by name, from its metadata file."""
    refs = _metadata(location).get("refs", {})
    return {name: ref["snapshot-id"] for name, ref in refs.items()}


def _is_compaction(location: str) -> bool:
    """Whether the last commit to main has changed no row."""
    metadata = _metadata(location)
    main = metadata.get("current-snapshot-id")
    kinds = {s["snapshot-id"]: s["summary"]["operation"] for s in metadata.get("snapshots", [])}
    return kinds.get(main) == "replace"


def mains(lake: Lake) -> dict[str, int | None]:
    """Where main of each ledger stands."""
    locations = table_locations(lake)
    return {
        name: _refs(location).get("main") for name, location in locations.items() if name in LEDGERS
    }
