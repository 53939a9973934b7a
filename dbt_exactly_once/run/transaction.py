"""A run as a transaction over the ledgers: lock, branch, audit, publish, recover.

A run writes its ledgers to a branch of its own, which nobody else sees, and publishes by moving
`main` of every ledger to it, `published_runs` first: the row that it holds is the commit record.
Whatever stops a run before that leaves `main` as it was; whatever stops it afterwards is finished
by the next command that writes, from the snapshots that the record names.

The lock is a table, since making a table is atomic in every Iceberg catalog and carries the owner
in the same commit. It is taken from a dead owner by renaming it to a name made of that owner's run
id: of two that try, or of one that wakes up late, the second finds the name taken.
"""

from __future__ import annotations

import csv
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.flags import get_flags

from dbt_exactly_once.adapter.engine import (
    Engine,
    ExactlyOnceError,
    engine_of,
    literal,
    one_line,
    told_in_a_line,
)
from dbt_exactly_once.adapter.lake_version import (
    LAKE_VERSION,
    RECORD,
    VERSION_PROPERTY,
    check_columns,
    check_version,
    lacking_columns,
    version_of,
)
from dbt_exactly_once.adapter.shared_session import BRANCH_SETTING, LOCK, LOCK_SCHEMA_SETTING
from dbt_exactly_once.landing.landed_again import LandedAgain, land_again
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.landing.landed_tables import CONSUMED_TAG, MOVED
from dbt_exactly_once.process import ProcessIdentity
from dbt_exactly_once.resolvers.hooks import being_asked, load_hooks
from dbt_exactly_once.run.early_readers import early_readers
from dbt_exactly_once.run.filters import filter_sql
from dbt_exactly_once.run.migration import MIGRATION, LedgerMigration, add_columns, bring_up
from dbt_exactly_once.run.publication import (
    HISTORY,
    Publication,
    Publications,
    mains_of,
    or_rebuild,
)
from dbt_exactly_once.run.upkeep import REMOVAL, Upkeep, count_expired
from dbt_exactly_once.services.effects import Effect
from dbt_exactly_once.services.executions import Executions, main_of, move_main, patiently
from dbt_exactly_once.services.model_services import ModelService, ModelServices, model_services

GRAVE = "run_lock_of_"
RUN_ID_PROPERTY = "spark.sql.iceberg.snapshot-property.run-id"
# a run tells of so many triggers at its end
SAID_TRIGGERS = 20


_making = threading.Lock()


@dataclass(frozen=True)
class Table:
    """A table of the project: where it is and how it is made."""

    name: str
    schema: str
    columns: tuple[tuple[str, str, str], ...] = ()
    partitioned_by: str = ""
    sorted_by: str = ""
    wap: bool = False
    # of the lake, on the table that carries it
    version: int | None = None

    @property
    def relation(self) -> str:
        return f"{self.schema}.{self.name}"

    def ddl(self) -> str:
        """`create table if not exists`, with the columns of the project's yml."""
        columns = ",\n    ".join(
            f"{name} {kind} comment {literal(text)}" for name, kind, text in self.columns
        )
        properties = {
            "write.metadata.delete-after-commit.enabled": "true",
            # what a run adds is small: at Iceberg's own size one task would write all of it
            "write.spark.advisory-partition-size-bytes": str(8 << 20),
        }
        if self.wap:
            properties["write.wap.enabled"] = "true"
        if self.version is not None:
            properties[VERSION_PROPERTY] = str(self.version)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        partitioned = f"\npartitioned by ({self.partitioned_by})" if self.partitioned_by else ""
        return (
            f"create table if not exists {self.relation} (\n    {columns}\n) using iceberg"
            f"{partitioned}\ntblproperties ({listed})"
        )

    def no_rows(self, target: str) -> str:
        """What makes a snapshot and changes no row; target: the table or a branch of it."""
        names = ", ".join(column for column, _, _ in self.columns)
        return f"insert into {target} ({names}) select {names} from {self.relation} where false"


@dataclass(kw_only=True)
class Run(Publication):
    """What a run has frozen at its start."""

    clock: datetime
    number: int
    publication_number: int
    schema: str
    consumed: dict[str, str | None]
    landed: dict[str, str | None]
    greatest_received_at: str | None
    removal_bound: str | None = None
    # what its queue was found to hold: whether any key comes more than once, and the greatest
    # received_at; known behind trigger_queue
    knows_queue: bool = False
    keys_come_again: bool = True
    latest_in_queue: str | None = None
    # of its deliveries whose trigger has a resolver: the triggers, and the days of received_at
    triggers_with_resolver: list[str] = field(default_factory=list)
    days_with_resolver: list[str] = field(default_factory=list)
    # False: a preview, which decides all and publishes nothing
    publishes: bool = True
    # the snapshots of the seeds that it reads, by their relations
    seeds: dict[str, str] = field(default_factory=dict)
    # the ledgers that this run has begun to write
    written: set[str] = field(default_factory=set)
    # entries of history that had expired
    removed: int = 0
    # where main of a table stands that it adds to behind publication
    effect_starts: dict[str, str] = field(default_factory=dict)
    # how the landed tables are read, by what was asked for so far
    landed_rows: dict[str, LandedRows] = field(default_factory=dict)
    # requests to take a rejected landing again, and what became of them
    landed_again: list[LandedAgain] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def bind_removal(self, bound: str | None) -> None:
        """Freeze up to which expiry this run has history removed."""
        self.removal_bound = bound or "0001-01-01 00:00:00"

    def bind_queue(
        self, keys_come_again: bool, latest: str | None, with_resolver: list[dict[str, str]]
    ) -> None:
        """Keep what the queue of this run was found to hold.

        with_resolver: the triggers and days of deliveries whose trigger has a resolver.
        """
        self.knows_queue = True
        self.keys_come_again = keys_come_again
        self.latest_in_queue = latest
        self.triggers_with_resolver = sorted({found["trigger_name"] for found in with_resolver})
        self.days_with_resolver = sorted({found["day"] for found in with_resolver})

    def moves_event_time(self, milliseconds: float) -> bool:
        """Whether what this run takes moves event time further than so, to the second."""
        if not self.latest_in_queue or not self.greatest_received_at:
            return bool(self.latest_in_queue)
        before, now = (
            min(datetime.fromisoformat(time[:19]), self.clock)
            for time in (self.greatest_received_at, self.latest_in_queue)
        )
        return now - before > timedelta(milliseconds=milliseconds) - timedelta(seconds=1)

    def landed_now(self) -> dict[str, str]:
        """The snapshots that this run consumes, of the landed tables that have one."""
        return {name: snapshot for name, snapshot in self.landed.items() if snapshot}

    def has_landed(self, table: str) -> bool:
        """Whether anything was landed in a table since the last published run."""
        return self.landed[table] is not None and self.landed[table] != self.consumed[table]


class Transactions:
    """What the macros call as `adapter.exactly_once`; one for each dbt process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ledgers: dict[str, Table] = {}
        self._landed: dict[str, Table] = {}
        self._transaction: frozenset[str] = frozenset()
        self._scratch: dict[str, Table] = {}
        self._publications = Publications(self, engine)
        self._code: tuple[Path, str] | None = None
        self._decision_rules: list[dict[str, str]] = []
        self.run: Run | None = None

    @classmethod
    def of_adapter(cls, adapter: Any) -> Transactions:
        """The object that belongs to an adapter, made at its first use."""
        with _making:
            if not hasattr(adapter, "_exactly_once"):
                adapter._exactly_once = cls(engine_of(adapter))
            return adapter._exactly_once

    # ---------------------------------------------------------------- begin

    def begin(
        self,
        graph: Mapping[str, Any],
        selected: Sequence[str],
        run_id: str,
        clock: datetime,
        variables: Mapping[str, Any],
    ) -> Run | None:
        """Take the lock, finish what a dead run has left, freeze what this run reads.

        Returns None where the command runs no model of the transaction. Raises ExactlyOnceError
        where only a part of the transaction was selected, where another run is at work, and where
        the ledgers do not fit together.
        """
        self.run = None
        self.describe(graph)
        chosen = self._transaction & set(selected)
        if not chosen:
            return None
        if chosen != self._transaction:
            missing = sorted(name.rsplit(".", 1)[-1] for name in self._transaction - chosen)
            raise ExactlyOnceError(
                "exactly_once: this command would run a part of the transaction only (without "
                f"{', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}) and publish half "
                "a run: use `dbt build`, `dbt run` or `dbt build --selector hot_path`"
            )
        self._refuse_early_readers(graph, selected)
        if get_flags().FULL_REFRESH:
            raise ExactlyOnceError(
                "exactly_once: --full-refresh would make the ledgers anew and process every "
                "document again: leave it out, or start over with `dbt run-operation reset_state "
                "--args '{really: true}'` (`dbt seed --full-refresh` is harmless)"
            )
        self._engine.rows(f"create namespace if not exists {self._schema}")
        self._lock(run_id, clock, float(variables["run_timeout"]))
        try:
            self._prepare(run_id)
            self.ensure_tables()
            publishes = bool(variables.get("publish", True))
            services = model_services(graph) if publishes else []
            # what it records is consumed by this run
            said = self._services(run_id).settle(services, self._tables_of(services))
            self.run = self._freeze(run_id, clock)
            self.run.said += said
            self._follow_event_time(self.run)
            self.run.publishes = publishes
            if variables.get("preview_all_landed"):
                self._start_from_nothing(self.run)
            elif publishes and self.run.has_landed("resubmissions"):
                self._land_again(self.run)
            self._engine.set(BRANCH_SETTING, self.run.branch)
        except BaseException:
            self._release(run_id)
            raise
        return self.run

    def _refuse_early_readers(self, graph: Mapping[str, Any], selected: Sequence[str]) -> None:
        """Refuse models that would keep what the run may never publish."""
        nodes = graph["nodes"]
        written = {
            name: node["name"]
            for name, node in nodes.items()
            if name in self._transaction and node["config"]["materialized"] != "view"
        }
        record = next(name for name, model in written.items() if model == RECORD)
        found = early_readers(nodes, written.keys() - {record}, record, selected)
        if found:
            raise ExactlyOnceError(
                f"exactly_once: {', '.join(found)} would keep rows of ledgers before they are "
                "published, and of runs that fail: let it stand behind publication with the line "
                "`-- depends_on: {{ ref('published_runs') }}`, read a public view "
                "(document_statuses), or make it a view"
            )

    def describe(self, graph: Mapping[str, Any]) -> None:
        """Read from dbt's graph which tables are ledgers and which are landed."""
        nodes = [node for node in graph["nodes"].values() if node["resource_type"] == "model"]
        ledgers = [node for node in nodes if node["config"]["materialized"] == "ledger"]
        self._ledgers = {
            node["name"]: Table(
                node["alias"],
                node["schema"],
                _columns(node),
                node["config"].get("partitioned_by") or "",
                node["config"].get("sorted_by") or "",
                wap=True,
                version=LAKE_VERSION if node["name"] == RECORD else None,
            )
            for node in ledgers
        }
        self._landed = {
            node["name"]: Table(
                node["identifier"],
                node["schema"],
                _columns(node),
                (node["config"].get("meta") or {}).get("partitioned_by") or "",
            )
            for node in graph["sources"].values()
            if node["source_name"] == "landing"
        }
        self._transaction = frozenset(
            node["unique_id"] for node in nodes if "transaction" in node["tags"]
        )
        self._scratch = {
            node["name"]: Table(node["alias"], node["schema"])
            for node in nodes
            if "transaction" in node["tags"]
            and node["config"]["materialized"] not in ("ledger", "view")
        }

    def _prepare(self, run_id: str) -> None:
        """Make the session this run's; under the lock, since others may share it."""
        self._engine.set(LOCK_SCHEMA_SETTING, self._schema)
        self._engine.set(RUN_ID_PROPERTY, run_id)
        self._engine.reset(BRANCH_SETTING)

    def ensure_tables(self, may_be_missing: str | None = None, migrates: bool = False) -> None:
        """Make the landed tables and the ledgers that do not exist yet, empty.

        Refuses a lake of another version, unless it is being migrated.
        """
        self._make_schemas()
        existing = self._existing(self._schema)
        if RECORD + MOVED in existing:
            raise ExactlyOnceError(
                f"exactly_once: the tables of {self._schema} have moved to another catalog: use "
                "the target that leads to it"
            )
        if not migrates:
            self._check_version(existing)
        missing = [name for name, table in self._ledgers.items() if table.name not in existing]
        if missing and len(missing) < len(self._ledgers):
            self._refuse_lost_ledgers([n for n in missing if n != may_be_missing], existing)
        for name in missing:
            table = self._ledgers[name]
            self._engine.rows(table.ddl())
            if table.sorted_by:
                self._engine.rows(
                    f"alter table {table.relation} write distributed by partition "
                    f"locally ordered by {table.sorted_by}"
                )
            # a table without a snapshot has no main that a branch could start from
            self._engine.rows(table.no_rows(table.relation))
        for schema in sorted({table.schema for table in self._landed.values()}):
            there = self._existing(schema)
            for table in self._landed.values():
                if table.schema == schema and table.name not in there:
                    self._engine.rows(table.ddl())

    def _make_schemas(self) -> None:
        for schema in sorted({t.schema for t in (*self._ledgers.values(), *self._landed.values())}):
            self._engine.rows(f"create namespace if not exists {schema}")

    def _check_version(self, existing: set[str]) -> None:
        """Refuse a lake of another version; where no ledger says which, by its columns."""
        check_version(self._engine, self._ledgers[RECORD].relation)
        if self._ledgers[RECORD].name not in existing:
            for table in self._existing_tables():
                lacking = lacking_columns(self._engine, table.relation, table.columns)
                check_columns(table.relation, [name for name, _, _ in lacking])

    def check_lake(self, graph: Mapping[str, Any]) -> None:
        """Refuse a lake of another version than this package's, for a command that only reads."""
        self.describe(graph)
        check_version(self._engine, self._ledgers[RECORD].relation)

    def _existing_tables(self) -> list[Table]:
        """The ledgers and the landed tables that exist."""
        tables = [*self._ledgers.values(), *self._landed.values()]
        existing = {schema: self._existing(schema) for schema in {table.schema for table in tables}}
        return [table for table in tables if table.name in existing[table.schema]]

    def _refuse_lost_ledgers(self, missing: Sequence[str], existing: set[str]) -> None:
        """Refuse where a ledger that was published is gone; one that a later version adds is not.

        The last row of published_runs tells which were published; where that ledger itself is gone,
        the others were if they have rows.
        """
        if RECORD not in missing:
            last = self._publications.last()
            lost = [name for name in missing if last and name in last["ledger_publishes"]]
        else:
            filled = (
                self._engine.rows(f"select 1 from {table.relation} limit 1")
                for table in self._ledgers.values()
                if table.name in existing
            )
            lost = list(missing) if any(filled) else []
        if lost:
            raise ExactlyOnceError(
                f"exactly_once: ledger {', '.join(lost)} is missing in schema {self._schema} "
                "while documents were decided with it: going on would decide them again. Restore "
                f"it{or_rebuild(*lost)}, or start over with `dbt run-operation reset_state --args "
                "'{really: true}'`"
            )

    @property
    def _schema(self) -> str:
        return self._ledgers[RECORD].schema

    @property
    def _tag(self) -> str:
        return CONSUMED_TAG + self._schema

    def _existing(self, schema: str) -> set[str]:
        return {str(row[1]) for row in self._engine.rows(f"show tables in {schema}")}

    # ---------------------------------------------------------------- lock

    def _lock(self, run_id: str, clock: datetime, run_timeout: float) -> None:
        owner = {
            **ProcessIdentity.own().as_properties(),
            "run_id": run_id,
            "locked_at": datetime.now(timezone.utc).isoformat(),
        }
        listed = ", ".join(f"'{key}' = {literal(value)}" for key, value in owner.items())
        for attempt in range(3):
            try:
                self._engine.rows(
                    f"create table {self._schema}.{LOCK} (run_id string) using iceberg "
                    f"tblproperties ({listed})"
                )
                return
            except Exception as error:
                holder = self._holder()
                if holder is None:
                    if attempt == 2:
                        raise ExactlyOnceError(
                            f"exactly_once: the lock cannot be taken: {one_line(error)}"
                        ) from error
                    time.sleep(0.2)
                    continue
                self._take_over(holder, run_timeout)
        raise ExactlyOnceError(
            "exactly_once: another run took the lock over first; start this one again when it ends"
        )

    def _holder(self) -> dict[str, str] | None:
        """The properties of the lock, read fresh; None where it is free."""
        return self._engine.properties(f"{self._schema}.{LOCK}")

    def holds_lock(self, run_id: str) -> bool:
        """Whether the lock is a run's, read fresh."""
        holder = self._holder()
        return holder is not None and holder.get("run_id") == run_id

    def _take_over(self, holder: Mapping[str, str], run_timeout: float) -> None:
        """Bury a lock whose owner is dead, too old or given up; refuse otherwise."""
        locked_at = datetime.fromisoformat(holder["locked_at"])
        age = datetime.now(timezone.utc) - locked_at
        process = ProcessIdentity.of_properties(holder)
        given_up = holder.get("abandoned") == "true"
        if not (given_up or process.is_known_dead() or age > timedelta(seconds=run_timeout)):
            raise ExactlyOnceError(
                f"exactly_once: run {holder['run_id']} is at work since {locked_at:%H:%M:%S} UTC "
                f"({int(age.total_seconds())} s, process {holder['pid']} on {holder['host']}): "
                "wait for it to end; if it is gone, `dbt run-operation abandon_run --args "
                f"'{{run_id: {holder['run_id']}}}'`"
            )
        try:
            self._bury(holder["run_id"])
        except Exception as error:
            raise ExactlyOnceError(
                "exactly_once: another run is taking over from the dead run "
                f"{holder['run_id']}; start this one again when it ends ({one_line(error)})"
            ) from error

    def _bury(self, run_id: str) -> None:
        grave = GRAVE + run_id.replace("-", "_")
        self._engine.rows(f"alter table {self._schema}.{LOCK} rename to {self._schema}.{grave}")

    def _release(self, run_id: str) -> None:
        """Give the lock back, where it is still this run's."""
        if self.holds_lock(run_id):
            self._bury(run_id)

    def abandon(self, graph: Mapping[str, Any], run_id: str) -> str:
        """Mark the lock of a run as given up, so that the next run takes it over."""
        self.describe(graph)
        holder = self._holder()
        if holder is None or holder.get("run_id") != run_id:
            found = "no run" if holder is None else f"run {holder['run_id']}"
            raise ExactlyOnceError(
                f"exactly_once: {found} holds the lock, not {run_id}: nothing to give up"
            )
        self._engine.rows(
            f"alter table {self._schema}.{LOCK} set tblproperties ('abandoned' = 'true')"
        )
        return f"run {run_id} is given up; the next run takes over"

    # ---------------------------------------------------------------- freeze and recover

    def _freeze(self, run_id: str, clock: datetime) -> Run:
        last, starts = self._as_published()
        consumed = dict(last["landed_snapshots"]) if last else {}
        refs = self.refs(self._landed)
        self._keep_consumed(consumed, refs)
        return Run(
            run_id=run_id,
            lock_id=run_id,
            clock=clock.replace(tzinfo=None),
            number=(last["run_number"] if last else 0) + 1,
            publication_number=(last["publication_number"] if last else 0) + 1,
            schema=self._schema,
            starts={name: str(snapshot) for name, snapshot in starts.items()},
            consumed={name: consumed.get(name) for name in self._landed},
            landed=mains_of(refs),
            greatest_received_at=last["greatest_received_at"] if last else None,
        )

    def _as_published(
        self, but: str | None = None
    ) -> tuple[dict[str, Any] | None, dict[str, str | None]]:
        """The last row of published_runs, and main of each ledger, which is as that row says.

        What was published is finished first. but: the ledger that may be missing or changed.
        """
        last = self._publications.last()
        mains = self._publications.finish(last, but)
        self._publications.check(last, mains, but)
        return last, mains

    def _follow_event_time(self, run: Run) -> None:
        """Set event time back where the row that it rests on was removed from the landed table.

        Upkeep forgets the oldest rows only, so it never removes that one.
        """
        rows = self.landed_rows("deliveries", run)
        if run.greatest_received_at is None or not rows.may_miss_consumed:
            return
        known = f"timestamp '{run.greatest_received_at}'"
        found = self._engine.rows(
            f"select cast(max(received_at) as string), max(received_at) < {known} "
            f"from {rows.until_landed()} where received_at <= {known}"
        )[0]
        if found[1]:
            run.said.append(
                f"event time follows the landed rows: from {run.greatest_received_at} to {found[0]}"
            )
            run.greatest_received_at = found[0]

    def _start_from_nothing(self, run: Run) -> None:
        """Let a preview decide all that has landed, on a branch on which the ledgers are empty."""
        for table in self._ledgers.values():
            self._engine.rows(f"alter table {table.relation} create branch {run.branch}")
            self._engine.rows(f"delete from {table.relation}.branch_{run.branch} where true")
        run.starts = self.branch_snapshots(run, with_record=True)
        run.consumed = dict.fromkeys(run.consumed)
        run.number = 1
        run.publication_number = 1
        run.greatest_received_at = None

    def landed_rows(self, name: str, run: Run | None = None) -> LandedRows:
        """How this run reads a landed table; asked of Iceberg once for what it has frozen."""
        run = run or self._open_run()
        consumed, landed = run.consumed[name], run.landed[name]
        rows = run.landed_rows.get(name)
        if rows is None or (rows.consumed, rows.landed) != (consumed, landed):
            ledgers = {
                ledger: f"{table.relation} version as of {run.starts[ledger]}"
                for ledger, table in self._ledgers.items()
            }
            table = self._landed[name]
            rows = LandedRows.of(self._engine, table, consumed, landed, ledgers)
            run.landed_rows[name] = rows
            run.said += rows.says()
        return rows

    def refs(self, tables: Mapping[str, Table]) -> dict[str, dict[str, str]]:
        """Branches and tags of each table."""
        found = self._engine.refs([table.relation for table in tables.values()])
        return {name: found[table.relation] for name, table in tables.items()}

    def _land_again(self, run: Run) -> None:
        """Land rejected rows that somebody wants taken again, so that this run takes them."""
        columns = "rejection_id, reason, raw_text"
        run.landed_again = land_again(
            self._engine,
            self.landed_rows("resubmissions", run).unconsumed(),
            f"(select {columns} from {self._ledgers['rejected_deliveries'].relation} "
            f"where table_name = 'deliveries' union select {columns} from "
            f"{self._landed['rejected_landings'].relation} where table_name = 'deliveries')",
            self._ledgers["journal_entries"].relation,
            self._landed["deliveries"].relation,
            {name: kind for name, kind, _ in self._landed["deliveries"].columns},
        )
        if any(became.delivery_id for became in run.landed_again):
            run.landed["deliveries"] = mains_of(self.refs(self._landed))["deliveries"]

    def full_name(self, table: Table) -> str:
        """A table's name with its catalog, as Iceberg's procedures want it."""
        return f"{self._engine.catalog()}.{table.relation}"

    def ledger(self, name: str) -> Table:
        """A ledger by the name of its model."""
        return self._ledgers[name]

    @property
    def ledgers(self) -> Mapping[str, Table]:
        """All ledgers by the names of their models."""
        return self._ledgers

    @property
    def landed(self) -> Mapping[str, Table]:
        """All landed tables by their names."""
        return self._landed

    def scratch(self) -> list[Table]:
        """The tables that each run makes anew, as far as there are some."""
        existing = self._existing(self._schema)
        return [table for table in self._scratch.values() if table.name in existing]

    # ---------------------------------------------------------------- while it runs

    def guard(self, ledger: str) -> None:
        """Refuse a write to a ledger outside of a run that holds lock and branch."""
        run = self.run
        if run is None:
            raise ExactlyOnceError(
                f"exactly_once: {ledger} is written by a whole run only: use `dbt build` or "
                "`dbt run`"
            )
        holder = self._holder()
        if holder is None or holder.get("run_id") != run.run_id:
            other = holder["run_id"] if holder else "nobody"
            raise ExactlyOnceError(
                f"exactly_once: run {run.run_id} has lost its lock to {other} before it wrote "
                f"{ledger}: nothing is published; start it again"
            )
        branch = self._engine.setting(BRANCH_SETTING)
        if branch != run.branch:
            raise ExactlyOnceError(
                f"exactly_once: the session writes to branch {branch}, not to {run.branch}: "
                "another client shares this Spark session; give readers a server of their own"
            )
        run.written.add(ledger)

    def guard_lock(self, model: str) -> None:
        """Refuse a write behind publication by a command that does not hold the lock."""
        holder = self._holder() if self.run is not None else None
        if holder is None or holder.get("run_id") != self._open_run().run_id:
            raise ExactlyOnceError(
                f"exactly_once: {model} is written by a whole run only, under its lock: use "
                "`dbt build` or `dbt run`"
            )

    def serve(self, node: Mapping[str, Any], sql: str, work: Any, states: Any) -> str:
        """Run a service that is a model; returns what to say of it. See ModelServices.run."""
        self.guard_lock(node["name"])
        run = self._open_run()
        if not run.publishes:
            return f"{node['name']}: a preview processes nothing"
        service = ModelService.of_node(node)
        said = self._services(run.run_id).run(
            service, sql, str(work), str(states), lambda: self.guard_lock(node["name"])
        )
        return f"{service.service}: {said}"

    def start_of(self, relation: Any) -> str:
        """Where main of a table stands that this run adds to behind publication, see
        append_published."""
        start = main_of(self._engine, str(relation))
        self._open_run().effect_starts[str(relation)] = start
        return start

    def append_published(self, node: Mapping[str, Any], sql: str) -> None:
        """Append what a model selects to its table, unless another run has added to it since the
        model has looked at it (start_of)."""
        run = self._open_run()
        table = Table(node["alias"], node["schema"], _columns(node))
        self._engine.rows(table.ddl())
        add_columns(self._engine, table)
        effect = Effect(self._engine, table.relation, run.run_id)
        effect.begin(run.effect_starts.get(table.relation))
        effect.append(sql)
        self.guard_lock(node["name"])
        refused = move_main(self._engine, table.relation, effect.branch)
        if refused:
            raise ExactlyOnceError(
                f"exactly_once: run {run.run_id} adds nothing to {table.relation}: {refused}; the "
                "next run adds what is missing"
            )

    def _tables_of(self, services: Sequence[ModelService]) -> set[str]:
        """The tables in the schemas of services, with their schema."""
        schemas = {service.relation.rpartition(".")[0] for service in services}
        return {f"{schema}.{name}" for schema in schemas for name in self._existing(schema)}

    def _services(self, run_id: str) -> ModelServices:
        executions = Executions(self._engine, self._landed["trigger_executions"].relation)
        return ModelServices(self._engine, run_id, executions)

    def properties(self, relation: str) -> dict[str, str]:
        """The properties of a table, see Engine.properties; none where it does not exist."""
        return self._engine.properties(relation) or {}

    def columns(self, relation: Any) -> list[str]:
        """The names of a table's columns, in the table's order."""
        return self._engine.columns(str(relation))

    def seed_as_written(self, path: str, delimiter: str) -> Any:
        """The agate table of a CSV in which every cell is text, also one that says null."""
        import agate

        text = agate.TypeTester(types=[agate.Text(cast_nulls=False)])
        return agate.Table.from_csv(
            path, column_types=text, encoding="utf-8-sig", delimiter=delimiter
        )

    def decision_rules(self, path: str) -> list[dict[str, str]]:
        """The rows of a CSV of rules; of the one that was read last where no path is given."""
        if path:
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                self._decision_rules = list(csv.DictReader(file))
        return self._decision_rules

    def noted(self, key: str) -> str | None:
        """What a run has noted under a key, see `note`."""
        return self.properties(self._ledgers[RECORD].relation).get(key)

    def note(self, key: str, value: str) -> None:
        """Note for the next runs what this one has found out; a preview leaves no trace."""
        if self._open_run().publishes:
            record = self._ledgers[RECORD].relation
            self._engine.rows(
                f"alter table {record} set tblproperties ({literal(key)} = {literal(value)})"
            )

    def code_version(self) -> str:
        """A checksum of the project's code; what was made of the same code has the same columns."""
        folder = Path(get_flags().PROJECT_DIR)
        if self._code is None or self._code[0] != folder:
            digest = hashlib.sha256((folder / "dbt_project.yml").read_bytes())
            for place in ("macros", "models"):
                for path in sorted((folder / place).rglob("*.*")):
                    digest.update(path.read_bytes() if path.is_file() else b"")
            self._code = (folder, digest.hexdigest())
        return self._code[1]

    def filter_sql(self, text: str, document: str = "document") -> str:
        """See dbt_exactly_once.run.filters.filter_sql."""
        return filter_sql(text, document)

    def expression_problem(self, text: str, relation: str, is_filter: bool) -> str | None:
        """Why Spark cannot use a filter or a key over a relation's columns; None where it can."""
        try:
            expression = filter_sql(text)
            used = (
                f"select 1 from {relation} where (\n{expression}\n) and false"
                if is_filter
                # a key is a value of one row: no aggregate, no window
                else f"select 1 from {relation} where cast((\n{expression}\n) as string) is null "
                "and false"
            )
            self._engine.rows(used)
        except Exception as error:
            return one_line(error)
        return None

    # ---------------------------------------------------------------- ask

    def hook_names(self, kind: str) -> list[str]:
        """The names that the modules of python_udfs register under a kind."""
        return load_hooks(get_flags().PROJECT_DIR).names(kind)

    def ask_resolvers(self, relation: str, columns: str, sql: str | None, is_missing: bool) -> None:
        """Ask resolvers until nobody is left to ask; keep the answers in `relation`.

        sql: selects the answers of those that have none in `relation` yet; None where there is
        nobody to ask. Raises ExactlyOnceError where a resolver has killed its worker.
        """
        if sql is None and not is_missing:
            return
        self._engine.rows(f"create or replace table {relation} ({columns}) using iceberg")
        is_cut_short = sql is not None
        answered = 0
        being_asked()
        while is_cut_short:
            try:
                self._engine.rows(f"insert into {relation} {sql}")
            except Exception as error:
                self._explain_death(error)
                raise
            found = self._engine.rows(f"select count(*), bool_or(is_cut_short) from {relation}")[0]
            is_cut_short = bool(found[1]) and found[0] > answered
            answered = found[0]

    def _explain_death(self, error: BaseException) -> None:
        """Say whom a worker was asking when it died; Spark only tells that it is gone."""
        for trigger_name, resolver, delivery_ids in being_asked():
            ids = ", ".join(delivery_ids[:5]) + (" ..." if len(delivery_ids) > 5 else "")
            held = f"{{delivery_id: {delivery_ids[0]}, trigger_name: {trigger_name}}}"
            raise ExactlyOnceError(
                f"exactly_once: resolver {resolver} of trigger {trigger_name} ended the process "
                f"that asked it about {ids}: nothing is published; correct it, or set a delivery "
                f"aside with `dbt run-operation hold_delivery --args '{held}'` "
                f"({one_line(error)})"
            ) from error

    # ---------------------------------------------------------------- publish and end

    def branch_snapshots(self, run: Run | None = None, with_record: bool = False) -> dict[str, str]:
        """What each ledger publishes: the run's branch, or main where the run wrote nothing."""
        run = run or self._open_run()
        refs = self._publications.refs()
        return {
            name: refs[name].get(run.branch, run.starts[name])
            for name in self._ledgers
            if with_record or name != RECORD
        }

    def remove_expired(self) -> None:
        """Remove from this run's branch of history what has expired, last of all that it writes."""
        run = self._open_run()
        if run.publishes and run.removal_bound:
            history = self._ledgers[HISTORY].relation
            run.removed = count_expired(self._engine, history, run.removal_bound)
            if run.removed:
                self._engine.rows(REMOVAL.format(history, run.removal_bound))

    def check_seeds_stayed(self) -> None:
        """Refuse what was decided by seeds that another command has loaded meanwhile.

        Parts of a run read the seeds at different times, so some would follow the old version and
        some the new one.
        """
        seeds = self._open_run().seeds
        refs = self._engine.refs(list(seeds))
        changed = sorted(name for name, read in seeds.items() if refs[name].get("main") != read)
        if changed:
            raise ExactlyOnceError(
                f"exactly_once: {', '.join(changed)} was loaded by `dbt seed` while this run was "
                "at work: nothing is published, since parts of it read the earlier version; start "
                "it again"
            )

    def publish(self, news: int, findings: Sequence[str] = ()) -> None:
        """Make the run's branch the truth, `published_runs` first.

        news: how much the run has found that the last one did not know; where it is 0 and nothing
        was landed, nothing is published. findings: what to say of the run at its end. Raises
        ExactlyOnceError where the count does not close or where another run has taken over
        meanwhile.
        """
        run = self._open_run()
        record = self._ledgers[RECORD].relation
        counts = self._engine.rows(
            "select taken, decided, waiting, unrouted, rejected, to_json(decided_by_trigger) "
            f"from {record} where run_number = {run.number}"
        )[0]
        self._leave_branch(run)
        taken, *parts = (int(count) for count in counts[:5])
        if taken != sum(parts):
            raise ExactlyOnceError(
                f"exactly_once: the count does not close: {taken} taken, but decided, waiting, "
                f"unrouted, rejected are {parts}; nothing is published; please report it"
            )
        if not run.publishes:
            run.said += _summary("preview, nothing is published", taken, parts, counts[5])
            run.said += findings
            return
        if not news and run.landed_now() == {k: v for k, v in run.consumed.items() if v}:
            run.said.append("nothing new, nothing published")
            return
        unwritten = self._ledgers.keys() - run.written
        if unwritten:
            raise ExactlyOnceError(
                f"exactly_once: run {run.run_id} has not written {', '.join(sorted(unwritten))} "
                "and publishes nothing: use `dbt build` or `dbt run`"
            )
        self._publications.publish(run)
        # where they are since this run has begun
        tagged = {name: {self._tag: consumed or ""} for name, consumed in run.consumed.items()}
        self._keep_consumed(run.landed, tagged)
        run.said += _summary(f"published run {run.number}", taken, parts, counts[5])
        run.said += findings
        if run.removed:
            run.said.append(f"{run.removed:,} expired history entries removed")

    def _keep_consumed(
        self, consumed: Mapping[str, str | None], refs: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Keep the consumed snapshot of each landed table from expiring, by a tag.

        Each schema of ledgers has a tag of its own, since several may consume one landed table.
        Called by the run that has consumed them, and by the next command where that was killed.
        refs: branches and tags of the landed tables, as they are.
        """
        for name, snapshot in consumed.items():
            if name not in refs or snapshot is None or refs[name].get(self._tag) == snapshot:
                continue
            relation = self._landed[name].relation
            if self._engine.has_snapshot(relation, snapshot):
                # workers make branches on a landed table at any time
                patiently(
                    self._engine.rows,
                    f"alter table {relation} create or replace tag `{self._tag}` "
                    f"as of version {snapshot}",
                )

    def remove_expired_history(
        self, graph: Mapping[str, Any], run_id: str, run_timeout: float
    ) -> str:
        """Remove, under the lock, what the last published run has let expire."""
        with self._locked(graph, run_id, run_timeout) as upkeep:
            if upkeep is None:
                return "no run is published yet, so nothing has expired"
            return upkeep.remove_expired()

    def maintain(
        self,
        graph: Mapping[str, Any],
        run_id: str,
        run_timeout: float,
        retention: Mapping[str, Any],
    ) -> list[str]:
        """Compact and forget, under the lock; returns what was freed. See Upkeep.maintain."""
        with self._locked(graph, run_id, run_timeout) as upkeep:
            if upkeep is None:
                return ["no run is published yet, so there is nothing to keep up"]
            return upkeep.maintain(retention)

    def rebuild_history(
        self, graph: Mapping[str, Any], run_id: str, run_timeout: float, entries: str
    ) -> str:
        """Make document_history anew, under the lock; returns how far. See Upkeep.rebuild_history.

        entries: the query that gives its rows. Raises ExactlyOnceError where another ledger is not
        as it was published.
        """
        with self._locked(graph, run_id, run_timeout, but=HISTORY) as upkeep:
            if upkeep is None:
                raise ExactlyOnceError(
                    "exactly_once: no run is published, so there is nothing to make history of"
                )
            return upkeep.rebuild_history(entries)

    def reset_state(self, graph: Mapping[str, Any], run_id: str, run_timeout: float) -> list[str]:
        """Drop the ledgers and what was made of them, not what has landed; returns what it dropped.

        Models with the tag `state` stand on the ledgers' run numbers: they go first, so that a kill
        in between leaves none that is ahead of its ledgers.
        """
        with self._locked(graph, run_id, run_timeout, checked=False):
            existing = self._existing(self._schema)
            tables = [
                node
                for node in graph["nodes"].values()
                if node["resource_type"] == "model"
                and {"transaction", "state"} & set(node["tags"])
                and node["config"]["materialized"] != "view"
                and node["alias"] in existing
            ]
            tables.sort(key=lambda node: ("state" not in node["tags"], node["alias"]))
            for node in tables:
                self._engine.rows(f"drop table if exists {node['schema']}.{node['alias']} purge")
            return [node["alias"] for node in tables]

    def migrate(self, graph: Mapping[str, Any], run_id: str, run_timeout: float) -> list[str]:
        """Bring a lake of an earlier version to this one, under the lock; says what it did."""
        with self._locked(graph, MIGRATION + run_id, run_timeout, checked=False):
            version = version_of(self._engine, self._ledgers[RECORD].relation)
            if version == LAKE_VERSION:
                return [f"the lake is of version {version} already"]
            self._make_schemas()
            existing = self._existing_tables()
            landed = [table for table in existing if not table.wap]
            if version is None:
                self._refuse_lost_ledgers([RECORD], self._existing(self._schema))
                said = bring_up(self._engine, existing)
                self.ensure_tables(migrates=True)
            else:
                said = bring_up(self._engine, landed)
                there = {name: table for name, table in self._ledgers.items() if table in existing}
                said += LedgerMigration(self._engine, there, version).change()
                self.ensure_tables(migrates=True)
                LedgerMigration(self._engine, self._ledgers, version).note()
            return [*said, f"the lake is of version {LAKE_VERSION}"]

    def move(
        self,
        graph: Mapping[str, Any],
        run_id: str,
        run_timeout: float,
        move_tables: Callable[[], list[str]],
    ) -> list[str]:
        """Move the tables under the lock, as the last run published them; returns their names."""
        self.describe(graph)
        # one that was cut off goes on
        has_begun = RECORD + MOVED in self._existing(self._schema)
        with self._locked(graph, run_id, run_timeout, checked=not has_begun):
            return move_tables()

    @contextmanager
    def _locked(
        self,
        graph: Mapping[str, Any],
        run_id: str,
        run_timeout: float,
        checked: bool = True,
        but: str | None = None,
    ) -> Iterator[Upkeep | None]:
        """Hold the lock as a run does, over ledgers that are as the last run published them.

        Gives what changes them, None where no run is published. checked: whether the ledgers are
        made and looked at; but: the one that may be missing or changed.
        """
        self.describe(graph)
        self._engine.rows(f"create namespace if not exists {self._schema}")
        self._lock(run_id, datetime.now(timezone.utc), run_timeout)
        try:
            self._prepare(run_id)
            if checked:
                self.ensure_tables(but)
            upkeep = self._upkeep(run_id, but) if checked else None
            if upkeep:
                self._keep_consumed(upkeep.consumed, self.refs(self._landed))
            yield upkeep
        finally:
            self._release(run_id)
            self._drop_graves(keep=GRAVE + run_id.replace("-", "_"))

    @told_in_a_line()
    def end(self, upkeep_every: int = 0, retention: Mapping[str, Any] | None = None) -> Run | None:
        """Leave nothing of an unpublished run behind and give the lock back.

        upkeep_every: after so many publications the run ends with upkeep, 0 for never; retention:
        see Upkeep.maintain.
        """
        run = self.run
        if run is None:
            return None
        self.run = None
        try:
            self._leave_branch(run)
            if not run.published:
                self._drop_branch(run.branch)
            elif upkeep_every and run.number % upkeep_every == 0:
                run.said += self._maintain_after(run, retention)
        finally:
            # also where the disk is full: the next run drops the branch
            self._release(run.run_id)
        self._drop_graves(keep=GRAVE + run.run_id.replace("-", "_"))
        return run

    def _upkeep(self, run_id: str, but: str | None = None) -> Upkeep | None:
        """Upkeep under the lock of a command; it begins as a run does, see `_as_published`."""
        last, _ = self._as_published(but)
        return Upkeep(self, self._publications, self._engine, run_id, last) if last else None

    def _maintain_after(self, run: Run, retention: Mapping[str, Any] | None) -> list[str]:
        """Upkeep at the end of a run; what goes wrong there is said and undoes nothing."""
        if not self.holds_lock(run.run_id):
            return ["no upkeep: another run has taken over"]
        try:
            upkeep = self._upkeep(run.run_id)
            return upkeep.maintain(retention or {}) if upkeep else []
        except Exception as error:
            return [
                f"upkeep failed, the run is published all the same: {one_line(error)}; "
                "`dbt run-operation maintain` does it again"
            ]

    def _leave_branch(self, run: Run) -> None:
        """Go back to main, unless another run that shares the session has set its branch."""
        if self._engine.setting(BRANCH_SETTING) == run.branch:
            self._engine.reset(BRANCH_SETTING)

    def _drop_graves(self, keep: str) -> None:
        """Forget buried locks but the newest: a late release must find its name taken."""
        for name in self._existing(self._schema):
            if name.startswith(GRAVE) and name != keep:
                self._engine.rows(f"drop table if exists {self._schema}.{name}")

    def _drop_branch(self, branch: str) -> None:
        for table in self._ledgers.values():
            self._engine.drop_branch(table.relation, branch)

    def _open_run(self) -> Run:
        if self.run is None:
            raise ExactlyOnceError("exactly_once: no run has begun in this command")
        return self.run


def _summary(
    outcome: str, taken: int, parts: Sequence[int], decided_by_trigger: str | None
) -> list[str]:
    """What a run has decided, in a line for the run and one for each of the first triggers."""
    decided, waiting, unrouted, rejected = parts
    lines = [
        f"{outcome}: {taken:,} taken, {decided:,} decided, {waiting:,} waiting, "
        f"{unrouted:,} unrouted, {rejected:,} rejected"
    ]
    by_trigger: dict[str, list[str]] = {}
    for item in json.loads(decided_by_trigger or "[]"):
        by_trigger.setdefault(item["trigger_name"], []).append(
            f"{item['documents']:,} {item['status']}"
        )
    lines += [f"{name}: {', '.join(by_trigger[name])}" for name in list(by_trigger)[:SAID_TRIGGERS]]
    if len(by_trigger) > SAID_TRIGGERS:
        lines.append(f"and {len(by_trigger) - SAID_TRIGGERS} more triggers, see run_log")
    return lines


def _columns(node: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (name, column["data_type"], " ".join((column.get("description") or "").split()))
        for name, column in node["columns"].items()
    )
