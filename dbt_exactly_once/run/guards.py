"""What is refused while a run is at work: writes without its lock, or to ledgers off its branch."""

from __future__ import annotations

from dbt_exactly_once.adapter.shared_session import BRANCH_SETTING
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.state import State


def guard_lock(state: State, run: Run | None, model: str) -> Run:
    """Refuse a write by a command that does not hold the lock of a whole run."""
    if run is None:
        raise ExactlyOnceError(
            f"exactly_once: {model} is written by a whole run only, under its lock: use "
            "`dbt build` or `dbt run`"
        )
    holder = state.lock.holder()
    if holder != run.run_id:
        raise ExactlyOnceError(
            f"exactly_once: run {run.run_id} has lost its lock to {holder or 'another run'} before "
            f"it wrote {model}; start it again: it repeats what was not published"
        )
    return run


def guard_scratch(state: State, run: Run) -> None:
    """Refuse the work of a run if another one, say one that slept, has written to its scratch
    tables; else its copies in memory are what their names say."""
    makers = state.engine.snapshot_runs([table.relation for table in state.tables.recreated])
    others = sorted(relation for relation, run_id in makers.items() if run_id != run.run_id)
    if others:
        raise ExactlyOnceError(
            f"exactly_once: {', '.join(others)} was written by run {makers[others[0]]} while run "
            f"{run.run_id} was at work, which publishes nothing; start it again"
        )
    run.unproven_copies.clear()


def guard_ledger(state: State, run: Run | None, ledger: str) -> None:
    """Refuse a write to a ledger outside of a run that holds lock and branch."""
    run = guard_lock(state, run, ledger)
    branch = state.engine.setting(BRANCH_SETTING)
    if branch != run.branch:
        raise ExactlyOnceError(
            f"exactly_once: the session writes to branch {branch}, not to {run.branch}: "
            "another client shares this Spark session; give readers a server of their own"
        )
    run.written.add(ledger)
