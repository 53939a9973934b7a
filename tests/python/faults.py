"""What goes wrong in a process of dbt: in that of a test, or in one of its own.

    python faults.py '{"fast_forward": "document_status"}' build --selector hot_path

runs dbt with the faults that a JSON object names, see FAULTS. Each is said when it happens, in a
line that begins with HAPPENED.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt import tracking
from dbt.cli.main import cli

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.session_engine import SessionEngine
from dbt_exactly_once.adapter.shared_session import LOCK
from dbt_exactly_once.run.door import ExactlyOnce
from dbt_exactly_once.run.lock import RunLock
from dbt_exactly_once.run.publication import Publications
from dbt_exactly_once.services.effects import Effect

HAPPENED = "-- fault:"


class Failing:
    """Makes chosen changes of tables fail, as a locked catalog does."""

    def __init__(self, patch: pytest.MonkeyPatch, fails: Callable[[str], bool]) -> None:
        """fails: whether a change fails, asked of each in the order in which they are made."""
        rows, fast_forward = Engine.rows, SessionEngine.fast_forward
        commit_no_rows, set_tag = SessionEngine.commit_no_rows, SessionEngine.set_tag
        self.changes: list[str] = []

        def change(what: str) -> None:
            self.changes.append(what)
            if fails(what):
                raise RuntimeError("[SQLITE_BUSY] The database file is locked")

        def failing_rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
            if sql.startswith(("alter", "call", "delete", "insert")) and LOCK not in sql:
                change(sql)
            return rows(engine, sql)

        def failing_fast_forward(engine: SessionEngine, relation: str, branch: str) -> None:
            change(f"fast_forward {relation}")
            fast_forward(engine, relation, branch)

        def failing_commit_no_rows(engine: SessionEngine, relation: str) -> None:
            change(f"commit_no_rows {relation}")
            commit_no_rows(engine, relation)

        def failing_set_tag(engine: SessionEngine, relation: str, *tag: str) -> None:
            change(f"set_tag {relation}")
            set_tag(engine, relation, *tag)

        patch.setattr(Engine, "rows", failing_rows)
        patch.setattr(SessionEngine, "fast_forward", failing_fast_forward)
        patch.setattr(SessionEngine, "commit_no_rows", failing_commit_no_rows)
        patch.setattr(SessionEngine, "set_tag", failing_set_tag)


def set_clock(patch: pytest.MonkeyPatch, clock: datetime) -> None:
    """dbt takes the clock of an invocation from here; a run freezes it as `run_started_at`."""
    original: Callable[..., None] = tracking.User.__init__

    def started_at(self: tracking.User, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        self.run_started_at = clock

    patch.setattr(tracking.User, "__init__", started_at)


# ---- faults of a process


def wrong_clock(patch: pytest.MonkeyPatch, clock: str) -> None:
    """The clock of the run is this one, or ahead by `+DAYS`."""
    now = datetime.now(timezone.utc)
    is_ahead = clock.startswith("+")
    set_clock(patch, now + timedelta(int(clock)) if is_ahead else datetime.fromisoformat(clock))
    _say(f"the clock is {clock}")


def failing_fast_forward(patch: pytest.MonkeyPatch, table: str) -> None:
    """The first publication of a table fails, while the others go on."""
    happened: list[str] = []

    def fails(change: str) -> bool:
        if happened or not (change.startswith("fast_forward") and change.endswith(f".{table}")):
            return False
        happened.append(change)
        _say(f"the publication of {table} fails")
        return True

    Failing(patch, fails)


def expired_snapshots(patch: pytest.MonkeyPatch, when: str) -> None:
    """Another program forgets all snapshots of the tables that no branch or tag names.

    when: one of PLACES. A landing comes first, so that the last one but it is forgotten.
    """
    owner, member = PLACES[when]
    original = getattr(owner, member)
    happened: list[str] = []

    def expire_first(self: Any, *arguments: Any, **options: Any) -> Any:
        if not happened:
            happened.append(when)
            _expire_all(self._engine)
            _say(f"snapshots expired {when}")
        return original(self, *arguments, **options)

    patch.setattr(owner, member, expire_first)


# before a run takes its lock, before it writes its first ledger, before it publishes
PLACES: dict[str, tuple[type, str]] = {
    "before": (RunLock, "take"),
    "at work": (ExactlyOnce, "guard"),
    "at publication": (Publications, "publish"),
}


def _expire_all(engine: SessionEngine) -> None:
    schemas = {str(row[0]) for row in engine.rows("show namespaces")}
    tables = [
        f"{schema}.{row[1]}"
        for schema in sorted(schemas & {"exactly_once", "landing"})
        for row in engine.rows(f"show tables in {schema}")
        # of what a run makes anew nothing is kept anyway
        if schema == "landing" or row[1] in KEPT
    ]
    if "landing.deliveries" in tables:
        engine.rows("insert into landing.deliveries select * from landing.deliveries where false")
    later = int((time.time() + 60) * 1000)
    for table in tables:
        expiring = engine._table(table).expireSnapshots()
        expiring.expireOlderThan(later).retainLast(1).commit()


# tables of the schema of the ledgers that stay from run to run
EFFECTS = ("new_documents", "booked_orders")
LEDGERS = tuple(path.stem for path in (Path(__file__).parents[2] / "models/record").glob("*.sql"))
KEPT = {*LEDGERS, *EFFECTS}


def slow_insert(patch: pytest.MonkeyPatch, hold: str) -> None:
    """The insert of the service is at work in Spark for as long as a file is there."""
    insert = Effect._insert

    def slowly(effect: Effect, branch: str, select: str) -> None:
        if effect._relation.endswith(".booked_orders"):
            _say("the insert of the service is at work")
            _register_wait()
            select = f"select * from ({select}) where is_gone('{hold}')"
        insert(effect, branch, select)

    patch.setattr(Effect, "_insert", slowly)


def _register_wait() -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import udf

    def is_gone(path: str) -> bool:
        # Spark's worker runs it, which knows nothing of this module
        import time
        from pathlib import Path

        while Path(path).exists():
            time.sleep(0.05)
        return True

    function = udf(is_gone, "boolean").asNondeterministic()
    SparkSession.builder.getOrCreate().udf.register("is_gone", function)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch, str], None]] = {
    "clock": wrong_clock,
    "fast_forward": failing_fast_forward,
    "expire": expired_snapshots,
    "slow_insert": slow_insert,
}


def _say(text: str) -> None:
    print(f"{HAPPENED} {text}", flush=True)


def main() -> None:
    patch = pytest.MonkeyPatch()
    for name, value in json.loads(sys.argv[1]).items():
        FAULTS[name](patch, value)
    sys.argv[1:2] = []
    cli()


if __name__ == "__main__":
    main()
