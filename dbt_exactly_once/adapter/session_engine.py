"""Iceberg's own methods in place of SQL, if this process has the Spark session itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dbt_exactly_once.adapter.engine import RUN_ID, Copy, Engine, Run
from dbt_exactly_once.errors import errors_in_one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# a larger table is not kept in memory, since one task would process all of its rows
MOST_ROWS = 1_000
MOST_BYTES = 1_000_000

# for each session, by relation
_kept: WeakKeyDictionary[SparkSession, dict[str, Copy]] = WeakKeyDictionary()


class SessionEngine(Engine):
    """SQL for what reads and writes rows; Iceberg's own methods, in the session, for the rest."""

    def __init__(self, run: Run, open_session: Callable[[], object] = lambda: None) -> None:
        """open_session: opens the session if it is not open yet."""
        super().__init__(run)
        self._open = open_session
        self._opened: SparkSession | None = None
        # Java's classes by name, found once: Py4J searches all jars for each part of a name
        self._classes: dict[str, Any] = {}

    @property
    def _session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        self._open()
        if self._opened is None or self._opened.sparkContext._jsc is None:
            session = SparkSession.builder.getOrCreate()
            java = session._jvm
            # set before self._opened, since several of dbt's threads come here at the same time
            spark = java.org.apache.spark.sql
            self._classes = {
                "ArraySeq": java.scala.collection.immutable.ArraySeq,
                "Dataset": spark.classic.Dataset,
                "Expressions": java.org.apache.iceberg.expressions.Expressions,
                "LocalRelation": spark.catalyst.plans.logical.LocalRelation,
                "Option": java.scala.Option,
                "SchemaParser": java.org.apache.iceberg.SchemaParser,
                "Spark3Util": java.org.apache.iceberg.spark.Spark3Util,
                "String": java.java.lang.String,
            }
            self._opened = session
        return self._opened

    def _table(self, relation: str) -> Any:
        session = self._session
        catalog, table = self._place(relation)
        # the catalog may be set to cache tables; a table loaded and then refreshed may be
        # another by then, since a lock is renamed and made again
        catalog.invalidateTable(table)
        # with its catalog: a thread that has run no statement does not know the current one
        return self._classes["Spark3Util"].loadIcebergTable(
            session._jsparkSession, f"{self.catalog()}.{relation}"
        )

    def _table_or_none(self, relation: str) -> Any:
        from pyspark.errors import AnalysisException

        try:
            return self._table(relation)
        except AnalysisException as error:
            if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                raise
            return None

    def _place(self, relation: str) -> tuple[Any, Any]:
        """Spark's object for the catalog, and a table or view as its methods want it."""
        session = self._session
        found = self._classes["Spark3Util"].catalogAndIdentifier(
            session._jsparkSession, f"{self.catalog()}.{relation}"
        )
        return found.catalog(), found.identifier()

    @errors_in_one_line()
    def make_schema(self, schema: str) -> None:
        catalog, table = self._place(f"{schema}.any_table")
        if not catalog.namespaceExists(table.namespace()):
            super().make_schema(schema)

    @errors_in_one_line()
    def rename(self, relation: str, name: str) -> None:
        catalog, table = self._place(relation)
        catalog.renameTable(table, self._place(f"{relation.rpartition('.')[0]}.{name}")[1])

    @errors_in_one_line()
    def drop_table(self, relation: str) -> None:
        catalog, table = self._place(relation)
        catalog.dropTable(table)

    def set(self, key: str, value: str) -> None:
        self._session.conf.set(key, value)

    def reset(self, key: str) -> None:
        self._session.conf.unset(key)

    def setting(self, key: str) -> str | None:
        return self._session.conf.get(key, None)

    @errors_in_one_line()
    def properties(self, relation: str) -> dict[str, str] | None:
        table = self._table_or_none(relation)
        if table is None:
            return None
        snapshot = table.currentSnapshot()
        shown = {"current-snapshot-id": str(snapshot.snapshotId()) if snapshot else "none"}
        return {**self._entries(table.properties()), **shown}

    @errors_in_one_line()
    def view_properties(self, relation: str) -> dict[str, str]:
        catalog, view = self._place(relation)
        return self._entries(catalog.loadView(view).properties())

    @errors_in_one_line()
    def snapshot_runs(self, relations: Sequence[str]) -> dict[str, str | None]:
        snapshots = {relation: self._table(relation).currentSnapshot() for relation in relations}
        return {
            relation: snapshot.summary().get(RUN_ID) if snapshot else None
            for relation, snapshot in snapshots.items()
        }

    @errors_in_one_line()
    def columns(self, relation: str) -> list[str]:
        # one call: to iterate a Java list takes three for each column, and an error at its end
        schema = self._table(relation).schema()
        described = json.loads(self._classes["SchemaParser"].toJson(schema))
        return [field["name"] for field in described["fields"]]

    @errors_in_one_line()
    def refs(self, relations: Sequence[str]) -> dict[str, dict[str, str]]:
        return {relation: self._snapshots(self._table(relation)) for relation in relations}

    @errors_in_one_line()
    def commits_between(self, relation: str, start: str, end: str) -> list[str] | None:
        # one step for each commit, since a table may have many snapshots before the start
        table = self._table(relation)
        kinds = []
        while end != start:
            snapshot = table.snapshot(int(end))
            if snapshot is None or snapshot.parentId() is None:
                return None
            kinds.append(snapshot.operation())
            end = str(snapshot.parentId())
        return kinds if table.snapshot(int(start)) is not None else None

    @errors_in_one_line()
    def has_snapshot(self, relation: str, snapshot: str) -> bool:
        return self._table(relation).snapshot(int(snapshot)) is not None

    @errors_in_one_line()
    def parent(self, relation: str, snapshot: str) -> str | None:
        found = self._table(relation).snapshot(int(snapshot))
        parent = found.parentId() if found is not None else None
        return None if parent is None else str(parent)

    @errors_in_one_line()
    def commit_no_rows(self, relation: str) -> None:
        self._table(relation).newAppend().commit()

    @errors_in_one_line()
    def fast_forward(self, relation: str, branch: str) -> None:
        self._table(relation).manageSnapshots().fastForwardBranch("main", branch).removeBranch(
            branch
        ).commit()

    @errors_in_one_line()
    def create_branch(self, relation: str, branch: str, snapshot: str) -> None:
        self._table(relation).manageSnapshots().createBranch(branch, int(snapshot)).commit()

    @errors_in_one_line()
    def drop_branch(self, relation: str, branch: str) -> None:
        table = self._table(relation)
        if table.refs().containsKey(branch):
            table.manageSnapshots().removeBranch(branch).commit()

    @errors_in_one_line()
    def set_tag(self, relation: str, tag: str, snapshot: str) -> None:
        table = self._table(relation)
        change = table.manageSnapshots()
        set_to = change.replaceTag if table.refs().containsKey(tag) else change.createTag
        set_to(tag, int(snapshot)).commit()

    @errors_in_one_line()
    def expire_snapshots(self, relation: str, older_than: datetime) -> int:
        # the procedure lists all files before and after in jobs of Spark
        table = self._table(relation)
        before = table.snapshots().size()
        instant = int(older_than.timestamp() * 1000)
        table.expireSnapshots().expireOlderThan(instant).retainLast(1).commit()
        return before - table.snapshots().size()

    @errors_in_one_line()
    def keep_in_memory(self, relation: str, name: str, snapshot: str | None = None) -> int | None:
        session = self._session._jsparkSession
        table = self._table_or_none(relation)
        # a view has no files to count: the caller knows that it selects few rows
        number = None if table is None else self._rows_if_few(table, snapshot)
        if table is not None and number is None:
            return None
        reader = session.read().option("versionAsOf", snapshot) if snapshot else session.read()
        frame = reader.table(relation)
        # with limit 0 Spark makes a plan that reads nothing
        read = (frame.limit(0) if number == 0 else frame).queryExecution()
        # Spark's internal rows: in Java rows a text that is not valid UTF-8 would be changed
        rows = self._classes["ArraySeq"].unsafeWrapArray(read.executedPlan().executeCollect())
        kept = self._classes["LocalRelation"](
            read.analyzed().output(), rows, False, self._classes["Option"].empty()
        )
        copy = self._classes["Dataset"].ofRows(session, kept.newInstance())
        if not rows.isEmpty():
            # of rows in one partition Spark knows that a group is in one place, and shuffles none
            copy = copy.coalesce(1)
        copy.createOrReplaceTempView(name)
        return int(rows.length())

    def keep_version_in_memory(
        self, relation: str, version: str, snapshot: str | None = None
    ) -> Copy | None:
        kept = _kept.setdefault(self._session, {})
        if self.version_in_memory(relation) != version:
            if relation in kept:
                self.forget_in_memory([kept[relation].name])
            name = f"{relation.replace('.', '_')}_at_{version}"
            rows = self.keep_in_memory(relation, name, snapshot)
            if rows is None:
                return None
            kept[relation] = Copy(version, name, rows)
        return kept[relation]

    def version_in_memory(self, relation: str) -> str | None:
        copy = _kept.get(self._session, {}).get(relation)
        return copy and copy.version

    @errors_in_one_line()
    def commit_as_run(
        self, relation: str, run_id: str, properties: Mapping[str, str], empties: bool
    ) -> bool:
        table = self._table_or_none(relation)
        if table is None or not properties.items() <= self._entries(table.properties()).items():
            return False
        snapshot = table.currentSnapshot()
        if snapshot is None or not snapshot.summary().containsKey(RUN_ID):
            return False
        change = table.newDelete() if empties else table.newAppend()
        if empties:
            change.deleteFromRowFilter(self._classes["Expressions"].alwaysTrue())
        change.set(RUN_ID, run_id).commit()
        # of rows that another run has written in between, this is no snapshot of this run
        table.refresh()
        return table.currentSnapshot().parentId() == snapshot.snapshotId()

    def _rows_if_few(self, table: Any, snapshot: str | None) -> int | None:
        """The number of rows in a table's files; None if the files hold too much.

        Counted by file, since a snapshot's summary may lack the total.
        """
        scan = table.newScan()
        tasks = (scan.useSnapshot(int(snapshot)) if snapshot else scan).planFiles()
        try:
            files = tasks.iterator()
            rows = size = 0
            while files.hasNext() and rows <= MOST_ROWS and size <= MOST_BYTES:
                file = files.next().file()
                rows += file.recordCount()
                size += file.fileSizeInBytes()
            return rows if rows <= MOST_ROWS and size <= MOST_BYTES else None
        finally:
            tasks.close()

    @errors_in_one_line()
    def forget_in_memory(self, names: Iterable[str]) -> None:
        kept = _kept.get(self._session, {})
        for name in names:
            self._session.catalog.dropTempView(name)
            for relation in [place for place, copy in kept.items() if copy.name == name]:
                del kept[relation]

    def _snapshots(self, table: Any) -> dict[str, str]:
        return {name: str(ref.snapshotId()) for name, ref in self._entries(table.refs()).items()}

    def _entries(self, found: Any) -> dict[str, Any]:
        """The entries of a Java map; to iterate by Py4J takes four calls each, and an error."""
        names = self._classes["String"].join("\0", found.keySet()).split("\0")
        return {name: found.getOrDefault(name, None) for name in names if name}


def engine_of(adapter: Any) -> Engine:
    """The engine for the connection that dbt's adapter has in this thread."""

    def run(sql: str) -> list[tuple[Any, ...]]:
        _, table = adapter.execute(sql, auto_begin=False, fetch=True)
        return [tuple(row) for row in table.rows]

    if adapter.config.credentials.method != "session":
        return Engine(run)
    return SessionEngine(run, lambda: adapter.connections.get_thread_connection().handle)
