"""Effects in the lake: rows that a run adds to a table behind its publication, all or none.

They are published as ledgers are. The rows go to a branch of the table that carries the run's id
and starts from where main is; in one step main is moved to it. Iceberg refuses that where main has
moved meanwhile, and where the branch is gone: who takes over from a run drops its branches first.
"""

from __future__ import annotations

from uuid import uuid4

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.services.executions import main_of, move_main

BRANCH_PREFIX = "effect_"
# a property of the snapshots of an effect: what a hook of the model writes does not have it
RUN_PROPERTY = "exactly-once-effect"
# Iceberg's message where a commit may have happened or not
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
        """Make the branch, where main is or was, and drop those that dead runs have left."""
        start = start or main_of(self._engine, self._relation)
        for branch in self._refs():
            if branch.startswith(BRANCH_PREFIX):
                self._engine.drop_branch(self._relation, branch)
        self._create(self.branch, start)

    def append(self, select: str) -> None:
        """Add the rows of a select, by name, to what is going to be published."""
        before = self._refs().get(self.branch)
        try:
            self._insert(self.branch, select)
        except Exception as error:
            # the commit may have happened, and only its answer been lost
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

        It happens once, whoever calls it how often. Where others have written to the table
        meanwhile, the rows are added to theirs, unless it is unknown whether they are there.
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
        """Drop the branch, where it is there: what was not published is gone."""
        for branch in self._refs():
            if branch.startswith(self.branch):
                self._engine.drop_branch(self._relation, branch)

    @property
    def _is_of_effect(self) -> str:
        return f"snapshots.summary['{RUN_PROPERTY}'] = {literal(self._run_id)}"

    def _start(self) -> str | None:
        """Where the branch starts, if main stems from there; None too where that has expired."""
        found = self._engine.rows(
            "select snapshots.parent_id "
            f"from {self._relation}.snapshots as snapshots "
            f"inner join {self._relation}.history as history "
            "on snapshots.parent_id = history.snapshot_id and history.is_current_ancestor "
            f"where {self._is_of_effect} order by snapshots.committed_at limit 1"
        )
        return str(found[0][0]) if found and self.branch in self._refs() else None

    def _publish_behind_others(self, start: str, main: str) -> str:
        """Add the rows of the branch to a main; returns why not, else an empty text."""
        # two processes may publish one effect: each has a branch of its own
        again = f"{self.branch}_again_{uuid4().hex}"
        self._create(again, main)
        self._insert(
            again,
            f"select * from {self._relation} with (`start-snapshot-id` = '{start}', "
            f"`end-snapshot-id` = '{self._refs()[self.branch]}')",
        )
        return move_main(self._engine, self._relation, again)

    def _create(self, branch: str, start: str) -> None:
        self._engine.rows(
            f"alter table {self._relation} create branch {branch} as of version {start}"
        )

    def _insert(self, branch: str, select: str) -> None:
        self._engine.rows(
            f"insert into {self._relation}.branch_{branch} "
            f"with (`snapshot-property.{RUN_PROPERTY}` = {literal(self._run_id)}) by name "
            f"select * from (\n{select}\n)"
        )

    def _refs(self) -> dict[str, str]:
        return self._engine.refs([self._relation])[self._relation]


def _is_unknown(error: BaseException | None) -> bool:
    """Whether an error or its cause has such a text."""
    while error is not None and UNKNOWN not in str(error):
        error = error.__cause__
    return error is not None
