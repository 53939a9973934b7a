"""What services report of their work: rows of landing.trigger_executions, appended.

A process starts work by claiming it: STARTED is appended only if nothing else was appended to the
table since the process looked the work up. So if two find the same document, one starts it. The
rows are written to a branch that starts at main; then main is moved to the branch, which Iceberg
refuses if main has moved meanwhile.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.errors import ExactlyOnceError, one_line

Work = TypeVar("Work")
Answer = TypeVar("Answer")

COLUMNS = (
    "execution_id, delivery_id, trigger_name, service, attempt, event, started_at, ended_at, "
    "message, result, recorded_at"
)
STARTED, SUCCESS, ERROR, TRANSIENT_ERROR = "STARTED", "SUCCESS", "ERROR", "TRANSIENT_ERROR"
LONGEST_MESSAGE = 1000
CLAIMS = 50
REF_CHANGES = 20
# how long upkeep keeps the branch of a claim whose process was killed
BRANCH_DAYS = 1


class Executions:
    """The landed table trigger_executions."""

    def __init__(self, engine: Engine, relation: str) -> None:
        self._engine = engine
        self.relation = relation

    def append(self, select: str, branch: str | None = None) -> None:
        """Append the rows of a select with the columns of the table."""
        target = self.relation + (f".branch_{branch}" if branch else "")
        self._engine.rows(f"insert into {target} ({COLUMNS}) {select}")

    def touch(self) -> None:
        """Commit no rows, so that a start under way is refused and looks its work up again."""
        self._engine.commit_no_rows(self.relation)

    def start(self, look_up: Callable[[], Work | None], rows: Callable[[Work], str]) -> Work | None:
        """Look up work and append its STARTED rows, as one atomic step; None without work.

        look_up: reads what is to be done, None if there is nothing; rows: the select of the STARTED
        rows of that work.
        """
        refused = ""
        for claim in range(CLAIMS):
            before = main_of(self._engine, self.relation)
            work = look_up()
            if work is None:
                return None
            branch = f"claim_{uuid4().hex}"
            try:
                patiently(
                    self._engine.rows,
                    f"alter table {self.relation} create branch if not exists {branch} "
                    f"as of version {before} retain {BRANCH_DAYS} days",
                )
                self.append(rows(work), branch)
                # refused if main has moved, or if any branch was created meanwhile
                refused = move_main(self._engine, self.relation, branch)
            finally:
                # started work has to be done, even if the branch cannot be dropped
                with suppress(Exception):
                    patiently(self._engine.drop_branch, self.relation, branch)
            if not refused:
                return work
            # let the others go first
            time.sleep(random.uniform(0, min(0.1 * 2**claim, 2)))
        raise ExactlyOnceError(
            f"exactly_once: no work could be started in {CLAIMS} attempts, since others append to "
            f"{self.relation} all the time: start fewer workers with a greater --concurrency "
            f"({refused})"
        )


def main_of(engine: Engine, relation: str) -> str:
    """The snapshot of main; a table that was never written to gets one without rows."""
    refs = engine.refs([relation])[relation]
    if "main" not in refs:
        engine.commit_no_rows(relation)
        refs = engine.refs([relation])[relation]
    return refs["main"]


def move_main(engine: Engine, relation: str, branch: str) -> str:
    """Move main to a branch that starts from it; returns why not, else an empty text."""
    ours = engine.refs([relation])[relation].get(branch)
    if ours is None:
        return f"{relation} has no branch {branch} any more"
    try:
        engine.fast_forward(relation, branch)
    except Exception as error:
        # the commit may have succeeded although its answer was lost
        has_moved = patiently(
            engine.rows,
            f"select 1 from {relation}.history where snapshot_id = {ours} and is_current_ancestor",
        )
        return "" if has_moved else one_line(error) or type(error).__name__
    return ""


def patiently(change: Callable[..., Answer], *arguments: str) -> Answer:
    """Change a branch or tag; retries, since Iceberg refuses it if another changes just then."""
    trial = 0
    while True:
        try:
            return change(*arguments)
        except Exception:
            trial += 1
            if trial == REF_CHANGES:
                raise
            time.sleep(random.uniform(0, 0.1 * trial))
