"""The one way in which the Python side talks to Spark: SQL, through any kind of connection.

A run asks for branches, properties and settings again and again. In SQL each of these is a
statement, which takes Spark longer to plan than to answer. If this process has the session itself,
SessionEngine asks Iceberg and the session directly instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Run = Callable[[str], "list[tuple[Any, ...]]"]
# the entry with the run's id in the summary of each snapshot that a run makes
RUN_ID = "run-id"
# what Python can make a local time of, for which it looks a day back
FIRST_TIME = "timestamp '0001-01-03'"
LAST_TIME = "timestamp '9999-12-31 23:59:59.999999'"
# The meaning of this project's SQL depends on these, so a profile cannot change them: each session
# gets them before its first statement.
SESSION_SETTINGS = {
    # an overwrite that selects no rows empties its table
    "spark.sql.sources.partitionOverwriteMode": "static",
    # a text stays as it is: "${env:HOME}" in a document is not replaced
    "spark.sql.variable.substitute": "false",
    # `literal` writes a backslash as two
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
}


@dataclass
class Copy:
    """The rows of a table or view in memory, kept until another version of it is asked for."""

    version: str
    # of the temporary view
    name: str
    rows: int
    # what was found out about the rows, by name
    notes: dict[str, Any] = field(default_factory=dict)


class Engine:
    """Runs SQL, whatever the connection, and reads and moves the branches of Iceberg's tables."""

    def __init__(self, run: Run) -> None:
        """run: runs a statement and returns its rows."""
        self._run = run
        self._catalog: str | None = None

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self._run(sql)

    def catalog(self) -> str:
        """The catalog in which table names are looked up."""
        if self._catalog is None:
            self._catalog = str(self.rows("select current_catalog()")[0][0])
        return self._catalog

    def make_schema(self, schema: str) -> None:
        """Create a schema, if it does not exist."""
        self.rows(f"create namespace if not exists {schema}")

    def set(self, key: str, value: str) -> None:
        """Set a setting of the session."""
        self.rows(f"set `{key}`=`{value}`")

    def reset(self, key: str) -> None:
        """Reset a setting of the session to its value at the session's start."""
        self.rows(f"reset `{key}`")

    def setting(self, key: str) -> str | None:
        """A setting of the session, None if it is not set."""
        value = str(self.rows(f"set `{key}`")[0][1])
        return None if value == "<undefined>" else value

    def properties(self, relation: str) -> dict[str, str] | None:
        """The properties of a table, read fresh; None if there is no such table.

        They include the reserved ones that Iceberg shows, such as `current-snapshot-id`.
        """
        schema, _, name = relation.rpartition(".")
        if name not in {str(row[1]) for row in self.rows(f"show tables in {schema}")}:
            return None
        try:
            self.rows(f"refresh table {relation}")
            # the same statement works for a table
            return self.view_properties(relation)
        except Exception:
            # the table was dropped after it was listed
            return None

    def view_properties(self, relation: str) -> dict[str, str]:
        """The properties of a view that exists."""
        return {str(key): str(value) for key, value in self.rows(f"show tblproperties {relation}")}

    def snapshot_runs(self, relations: Sequence[str]) -> dict[str, str | None]:
        """For each table, the run that made its current snapshot, read fresh."""
        made = (
            f"select '{relation}', max_by(summary['{RUN_ID}'], committed_at) "
            f"from {relation}.snapshots"
            for relation in relations
        )
        return {row[0]: row[1] for row in self.rows(" union all ".join(made))}

    def columns(self, relation: str) -> list[str]:
        """The names of a table's columns, in the table's order."""
        described = [str(row[0]) for row in self.rows(f"describe table {relation}")]
        # partitioning and the like follow after an empty line
        return described[: described.index("")] if "" in described else described

    def refs(self, relations: Sequence[str]) -> dict[str, dict[str, str]]:
        """For each table, the snapshots of its branches and tags by name, read fresh."""
        sql = "\nunion all\n".join(
            f"select '{relation}', name, cast(snapshot_id as string) from {relation}.refs"
            for relation in relations
        )
        found: dict[str, dict[str, str]] = {relation: {} for relation in relations}
        for relation, name, snapshot in self.rows(sql) if relations else []:
            found[relation][name] = snapshot
        return found

    def commits_between(self, relation: str, start: str, end: str) -> list[str] | None:
        """The kinds of a table's commits after one snapshot up to another, the last one first.

        None if a snapshot is gone, or the first is not an ancestor of the second.
        """
        snapshots = self._parents(relation)
        kinds = []
        at: str | None = end
        while at in snapshots and at != start:
            at, kind = snapshots[at]
            kinds.append(kind)
        return kinds if at == start and start in snapshots else None

    def has_snapshot(self, relation: str, snapshot: str) -> bool:
        """Whether a table can be read as of a snapshot."""
        return snapshot in self._parents(relation)

    def parent(self, relation: str, snapshot: str) -> str | None:
        """The parent of a snapshot of a table; None if it has none, or if the snapshot is gone."""
        return self._parents(relation).get(snapshot, (None, None))[0]

    def _parents(self, relation: str) -> dict[str, tuple[str | None, str]]:
        """The parent of each snapshot of a table, and the kind of its commit."""
        return {
            row[0]: (row[1], row[2])
            for row in self.rows(
                "select cast(snapshot_id as string), cast(parent_id as string), operation "
                f"from {relation}.snapshots"
            )
        }

    def commit_no_rows(self, relation: str) -> None:
        """Make a snapshot that changes no row. The first snapshot of a table creates its main."""
        self.rows(f"insert into {relation} select * from {relation} where false")

    def fast_forward(self, relation: str, branch: str) -> None:
        """Move main to a branch and drop the branch; Iceberg refuses one that has left main."""
        catalog = self.catalog()
        self.rows(f"call {catalog}.system.fast_forward('{catalog}.{relation}', 'main', '{branch}')")
        self.drop_branch(relation, branch)

    def create_branch(self, relation: str, branch: str, snapshot: str) -> None:
        """Create a branch of a table that starts at a snapshot."""
        self.rows(f"alter table {relation} create branch {branch} as of version {snapshot}")

    def drop_branch(self, relation: str, branch: str) -> None:
        """Drop a branch of a table, if it exists."""
        self.rows(f"alter table {relation} drop branch if exists {branch}")

    def set_tag(self, relation: str, tag: str, snapshot: str) -> None:
        """Let a tag of a table name a snapshot, whether the tag exists or not."""
        self.rows(f"alter table {relation} create or replace tag `{tag}` as of version {snapshot}")

    def expire_snapshots(self, relation: str, older_than: datetime) -> int:
        """Forget a table's snapshots from before a time, with the files that only they have.

        Those that a branch or a tag names stay. Returns how many it has forgotten.
        """
        catalog = self.catalog()
        before = len(self._parents(relation))
        self.rows(
            f"call {catalog}.system.expire_snapshots(table => '{catalog}.{relation}', "
            f"older_than => {time_literal(older_than)}, retain_last => 1)"
        )
        return before - len(self._parents(relation))

    def rename(self, relation: str, name: str) -> None:
        """Give a table another name in its schema; raises if a table has it."""
        schema = relation.rpartition(".")[0]
        self.rows(f"alter table {relation} rename to {schema}.{name}")

    def drop_table(self, relation: str) -> None:
        """Drop a table, if it exists; its files stay."""
        self.rows(f"drop table if exists {relation}")

    def keep_in_memory(self, relation: str, name: str, snapshot: str | None = None) -> int | None:
        """Keep the rows of a table in memory, as a temporary view, if they are few.

        Returns the number of rows, None if they are not kept. The rows of a view are always kept.
        snapshot: the one of the table to read, None for the current one. SQL alone cannot keep
        rows.
        """
        return None

    def keep_version_in_memory(
        self, relation: str, version: str, snapshot: str | None = None
    ) -> Copy | None:
        """Keep the rows of a table or view until another version of it is asked for.

        version: names the rows; snapshot: the one of the table to read, None for the current one.
        Returns the copy, which an earlier call may have made; None if they are not kept.
        """
        return None

    def version_in_memory(self, relation: str) -> str | None:
        """The version of a table or view that is kept in memory, see keep_version_in_memory."""
        return None

    def commit_as_run(
        self, relation: str, run_id: str, properties: Mapping[str, str], empties: bool
    ) -> bool:
        """Make a snapshot of a run, if a table has these properties and is a run's own work.

        empties: whether it deletes all rows or keeps them. Returns whether the table has now these
        rows, as the work of this run. Not done in SQL, where it takes as long as to write a small
        table.
        """
        return False

    def forget_in_memory(self, names: Iterable[str]) -> None:
        """Drop the temporary views that keep_in_memory or keep_version_in_memory has made."""


def run_in(spark: SparkSession) -> Run:
    """A function that runs SQL in a session that this process has opened itself, outside of dbt."""
    return lambda sql: [tuple(row) for row in readable_rows(spark.sql(sql))]


def readable_rows(frame: DataFrame) -> list[Row]:
    """The rows of a frame; a time that Python cannot read becomes the nearest one that it can.

    Spark knows years before 1 and after 9999, and services and other writers write what they like.
    """
    near = {
        name: f"if(`{name}` is null, null, least(greatest(`{name}`, {FIRST_TIME}), {LAST_TIME}))"
        for name, kind in frame.dtypes
        if kind == "timestamp"
    }
    if near:
        from pyspark.sql import functions

        frame = frame.withColumns({name: functions.expr(sql) for name, sql in near.items()})
    return frame.collect()


def appended_between(relation: str, start: str, end: str) -> str:
    """A relation of the rows that a table's commits after one snapshot up to another have appended.

    Only the files of these commits are read.
    """
    if start == end:
        # which Iceberg refuses
        return f"(select * from {relation} where false)"
    return (
        f"(select * from {relation} with "
        f"(`start-snapshot-id` = '{start}', `end-snapshot-id` = '{end}'))"
    )


def literal(value: object) -> str:
    """A SQL literal of a text, or null."""
    if value is None:
        return "null"
    # half of a surrogate pair has no UTF-8, so it cannot be sent to Spark
    text = str(value).encode(errors="replace").decode()
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def time_literal(moment: datetime | None) -> str:
    """A SQL literal of a time, or null; a time without a zone is in this process's zone."""
    if moment is None:
        return "cast(null as timestamp)"
    return f"timestamp '{in_utc(moment):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def in_utc(value: Any) -> Any:
    """A time in UTC, any other value as it is; Spark returns times in this process's zone."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
