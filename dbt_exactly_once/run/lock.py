"""The lock of a run: a table, whose properties name its owner.

To create a table is atomic in every Iceberg catalog, and stores the owner in the same commit. To
take the lock from a dead owner, a run renames the table to a name with that owner's run id. If two
runs try, or the owner wakes up late and releases the lock, the second finds the name taken.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.adapter.shared_session import LOCK
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.process import ProcessIdentity
from dbt_exactly_once.run.tables import Tables

GRAVE = "run_lock_of_"


class RunLock:
    """The lock of the ledgers."""

    def __init__(self, engine: Engine, tables: Tables) -> None:
        self._engine = engine
        self._tables = tables

    @property
    def _relation(self) -> str:
        return f"{self._tables.schema}.{LOCK}"

    def take(self, run_id: str, run_timeout: float) -> None:
        """Take the lock; raises ExactlyOnceError if another run is at work.

        run_timeout: the age in seconds from which a lock counts as left behind.
        """
        owner = {
            **ProcessIdentity.own().as_properties(),
            "run_id": run_id,
            "locked_at": datetime.now(timezone.utc).isoformat(),
        }
        listed = ", ".join(f"'{key}' = {literal(value)}" for key, value in owner.items())
        for attempt in range(3):
            try:
                self._engine.rows(
                    f"create table {self._relation} (run_id string) using iceberg "
                    f"tblproperties ({listed})"
                )
                return
            except Exception as error:
                holder = self._properties()
                if holder and holder.get("run_id") == run_id:
                    # the table was created, only the answer was lost
                    return
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

    def holder(self) -> str | None:
        """The id of the run that holds the lock, read fresh; None if it is free."""
        return (self._properties() or {}).get("run_id")

    def release(self, run_id: str) -> None:
        """Release the lock, if this run still holds it."""
        if self.holder() == run_id:
            self._bury(run_id)

    def release_own(self) -> None:
        """Release the lock that a run of this process held at its end; none is at work here now."""
        holder = self._properties()
        if holder and ProcessIdentity.of_properties(holder) == ProcessIdentity.own():
            self._bury(holder["run_id"])

    def abandon(self, run_id: str) -> None:
        """Mark the lock of a run as given up, so that the next run takes it over."""
        holder = self.holder()
        if holder != run_id:
            asked = (
                f"run {run_id} does not hold the lock"
                if run_id
                else "abandon_run needs the run_id of the run that holds the lock"
            )
            found = f"run {holder}" if holder else "no run"
            raise ExactlyOnceError(
                f"exactly_once: {asked}; it is held by {found}: nothing is given up"
            )
        self._engine.rows(f"alter table {self._relation} set tblproperties ('abandoned' = 'true')")

    def drop_graves(self, last: str) -> None:
        """Drop buried locks except the last run's: a late release must find its name taken."""
        for name in self._tables.existing(self._tables.schema):
            if name.startswith(GRAVE) and name != _grave_of(last):
                self._engine.drop_table(f"{self._tables.schema}.{name}")

    def _properties(self) -> dict[str, str] | None:
        """The properties of the lock, read fresh; None if it is free."""
        return self._engine.properties(self._relation)

    def _take_over(self, holder: Mapping[str, str], run_timeout: float) -> None:
        """Bury a lock that is too old, is given up or has a dead owner; refuse otherwise."""
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
        self._engine.rename(self._relation, _grave_of(run_id))


def _grave_of(run_id: str) -> str:
    return GRAVE + run_id.replace("-", "_")
