"""The one way in which the Python side talks to Spark: SQL, through whatever is connected to it.

What a run asks of its tables again and again (branches, properties, settings) is a statement of
SQL each, which takes Spark longer to plan than to answer. Where Spark runs in this process's own
session, the same is asked of Iceberg itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[str], "list[tuple[Any, ...]]"]
# in the summary of each snapshot that a run makes
RUN_ID = "run-id"
# What the SQL of this project means depends on these, so no profile decides them: each session gets
# them before its first statement.
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
        """The catalog that names of tables are looked up in."""
        if self._catalog is None:
            self._catalog = str(self.rows("select current_catalog()")[0][0])
        return self._catalog

    def set(self, key: str, value: str) -> None:
        """Set a setting of the session."""
        self.rows(f"set `{key}`=`{value}`")

    def reset(self, key: str) -> None:
        """Bring a setting of the session back to what it was at its start."""
        self.rows(f"reset `{key}`")

    def setting(self, key: str) -> str | None:
        """A setting of the session, None where it has none."""
        value = str(self.rows(f"set `{key}`")[0][1])
        return None if value == "<undefined>" else value

    def properties(self, relation: str) -> dict[str, str] | None:
        """The properties of a table, read fresh; None where there is no such table.

        With the reserved ones that Iceberg shows among them, `current-snapshot-id` for one.
        """
        schema, _, name = relation.rpartition(".")
        if name not in {str(row[1]) for row in self.rows(f"show tables in {schema}")}:
            return None
        try:
            self.rows(f"refresh table {relation}")
            # the same statement shows those of a table
            return self.view_properties(relation)
        except Exception:
            # gone since it was listed
            return None

    def view_properties(self, relation: str) -> dict[str, str]:
        """The properties of a view that exists."""
        return {str(key): str(value) for key, value in self.rows(f"show tblproperties {relation}")}

    def snapshot_runs(self, relations: Sequence[str]) -> dict[str, str | None]:
        """Of each table the run that has made its current snapshot, read fresh."""
        made = (
            f"select '{relation}', max_by(summary['{RUN_ID}'], committed_at) "
            f"from {relation}.snapshots"
            for relation in relations
        )
        return {row[0]: row[1] for row in self.rows(" union all ".join(made))}

    def columns(self, relation: str) -> list[str]:
        """The names of a table's columns, in the table's order."""
        described = [str(row[0]) for row in self.rows(f"describe table {relation}")]
        # partitioning and the like follow behind an empty line
        return described[: described.index("")] if "" in described else described

    def refs(self, relations: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of each table the snapshots of its branches and tags by their names, read fresh."""
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

        None where a snapshot is gone, or the first is not an ancestor of the second.
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
        """The snapshot before a snapshot of a table, None where nothing is known of it."""
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
        """Make a snapshot that changes no row: the first of a table is its main."""
        self.rows(f"insert into {relation} select * from {relation} where false")

    def fast_forward(self, relation: str, branch: str) -> None:
        """Move main to a branch that starts from it and drop the branch; Iceberg refuses others."""
        catalog = self.catalog()
        self.rows(f"call {catalog}.system.fast_forward('{catalog}.{relation}', 'main', '{branch}')")
        self.drop_branch(relation, branch)

    def drop_branch(self, relation: str, branch: str) -> None:
        """Drop a branch of a table, where it has it."""
        self.rows(f"alter table {relation} drop branch if exists {branch}")

    def keep_in_memory(self, relation: str, name: str, snapshot: str | None = None) -> int | None:
        """Keep the rows of a table in memory, as a temporary view, if they are few.

        Returns their number, None where they are not kept. Of a view they are kept whatever their
        number. snapshot: that of the table to read, None for the current one. SQL alone cannot do
        it.
        """
        return None

    def keep_snapshot_in_memory(self, relation: str, snapshot: str) -> tuple[str, int] | None:
        """Keep the rows of a snapshot until the session is asked for another one of the table.

        Returns the name of the copy, which the session may have had already, and their number; None
        where they are not kept.
        """
        return None

    def empty(self, relation: str, run_id: str, properties: Mapping[str, str]) -> bool:
        """Delete all rows of a table that has certain properties, as a run; says whether.

        SQL takes as long for it as for a small table.
        """
        return False

    def forget_in_memory(self, names: Iterable[str]) -> None:
        """Drop such views."""


def run_in(spark: SparkSession) -> Run:
    """What runs a statement in a session that this process has opened itself, outside of dbt."""
    return lambda sql: [tuple(row) for row in spark.sql(sql).collect()]


def literal(value: object) -> str:
    """A SQL literal of a text, or null."""
    if value is None:
        return "null"
    # half of a surrogate pair is no text: it cannot be sent to Spark
    text = str(value).encode(errors="replace").decode()
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def time_literal(moment: datetime | None) -> str:
    """A SQL literal of a time, or null; a time without a zone is in that of this process."""
    if moment is None:
        return "cast(null as timestamp)"
    return f"timestamp '{in_utc(moment):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def in_utc(value: Any) -> Any:
    """A time in UTC, any other value as it is: Spark gives times in the zone of this process."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
