"""Effects in the lake: rows that a run adds to a table after its publication, all or none.

They are published as ledgers are. The rows go to a branch of the table, named after the run, that
starts at main; then one step moves main to the branch. Iceberg refuses that step if main has moved
meanwhile or the branch is gone. A run that takes over from a dead one drops its branches.
"""

from __future__ import annotations

from uuid import uuid4

from dbt_exactly_once.adapter.engine import Engine, appended_between, literal
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.services.executions import main_of, move_main

BRANCH_PREFIX = "effect_"
# a property of an effect's snapshots; snapshots that a hook of the model writes do not have it
RUN_PROPERTY = "exactly-once-effect"
# Iceberg's message if a commit may have happened or not
UNKNOWN = "CommitStateUnknown"
TRIALS = 3


class UnknownCommitError(ExactlyOnceError):
    """Nobody knows whether rows were written."""


class Effect:
    """What one run adds to one table."""

    def __init__(self, engine: Engine, relation: str, run_id: str) -> None:
        self._engine = engine
        self._relation = relation
        self._run_id = run_id
        self.branch = BRANCH_PREFIX + run_id.replace("-", "_")

    def begin(self, start: str | None = None) -> None:
        """Create the branch at main, or at `start`, and drop those that dead runs have left."""
        start = start or main_of(self._engine, self._relation)
        for branch in self._refs():
            if branch.startswith(BRANCH_PREFIX):
                self._engine.drop_branch(self._relation, branch)
        self._engine.create_branch(self._relation, self.branch, start)

    def append(self, select: str) -> None:
        """Add the rows of a select, by name, to what is going to be published."""
        before = self._refs().get(self.branch)
        try:
            self._insert(self.branch, select)
        except Exception as error:
            # the commit may have succeeded although its answer was lost
            if self._refs().get(self.branch) != before:
                return
            if _is_unknown(error):
                raise UnknownCommitError(
                    f"exactly_once: nobody knows whether rows for {self._relation} were written: "
                    f"{one_line(error)}; nothing is published, the next run makes them again"
                ) from error
            raise

    def publish(self) -> str:
        """Move main to the branch; returns why not, else an empty text.

        The rows are published once, however often and by whomever this is called. If others have
        written to the table meanwhile, the rows are added to theirs, unless nobody can know whether
        they are there already.
        """
        refused = move_main(self._engine, self._relation, self.branch)
        for _ in range(TRIALS):
            # main is read before is_published: if another process publishes in between, main has
            # moved and Iceberg refuses this branch
            main = main_of(self._engine, self._relation)
            if not refused or self.is_published():
                return ""
            start = self._start()
            if start is None:
                return refused
            refused = self._publish_behind_others(start, main)
        return refused

    def is_published(self) -> bool:
        """Whether main has the rows."""
        return bool(
            self._engine.rows(
                f"select 1 from {self._relation}.history as history "
                f"inner join {self._relation}.snapshots as snapshots "
                "on history.snapshot_id = snapshots.snapshot_id "
                f"where history.is_current_ancestor and {self._is_of_effect} limit 1"
            )
        )

    def drop(self) -> None:
        """Drop the branch, if it exists: rows that were not published are gone."""
        for branch in self._refs():
            if branch.startswith(self.branch):
                self._engine.drop_branch(self._relation, branch)

    @property
    def _is_of_effect(self) -> str:
        return f"snapshots.summary['{RUN_PROPERTY}'] = {literal(self._run_id)}"

    def _start(self) -> str | None:
        """Where the branch starts; None if that or the branch is gone, or not in main's history."""
        found = self._engine.rows(
            "select snapshots.parent_id "
            f"from {self._relation}.snapshots as snapshots "
            f"inner join {self._relation}.history as history "
            "on snapshots.parent_id = history.snapshot_id and history.is_current_ancestor "
            f"where {self._is_of_effect} order by snapshots.committed_at limit 1"
        )
        return str(found[0][0]) if found and self.branch in self._refs() else None

    def _publish_behind_others(self, start: str, main: str) -> str:
        """Add the rows of the branch to a newer main; returns why not, else an empty text."""
        # two processes may publish one effect: each has a branch of its own
        again = f"{self.branch}_again_{uuid4().hex}"
        self._engine.create_branch(self._relation, again, main)
        rows = appended_between(self._relation, start, self._refs()[self.branch])
        self._insert(again, f"select * from {rows}")
        return move_main(self._engine, self._relation, again)

    def _insert(self, branch: str, select: str) -> None:
        self._engine.rows(
            f"insert into {self._relation}.branch_{branch} "
            f"with (`snapshot-property.{RUN_PROPERTY}` = {literal(self._run_id)}) by name "
            f"select * from (\n{select}\n)"
        )

    def _refs(self) -> dict[str, str]:
        return self._engine.refs([self._relation])[self._relation]


def _is_unknown(error: BaseException | None) -> bool:
    """Whether the message of an error or of one of its causes contains UNKNOWN."""
    while error is not None and UNKNOWN not in str(error):
        error = error.__cause__
    return error is not None
