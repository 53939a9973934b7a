"""The seeds of a run: read as they are written, checked once, unchanged until it publishes."""

from __future__ import annotations

from typing import Any

from dbt_exactly_once.adapter.engine import literal
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.state import State


def seed_as_written(path: str, delimiter: str) -> Any:
    """The agate table of a CSV in which every cell is text, also one that says null."""
    import agate

    text = agate.TypeTester(types=[agate.Text(cast_nulls=False)])
    return agate.Table.from_csv(path, column_types=text, encoding="utf-8-sig", delimiter=delimiter)


def noted(state: State, key: str) -> str | None:
    """What a run has noted under a key, see `note`."""
    return (state.engine.properties(state.tables.record.relation) or {}).get(key)


def note(state: State, run: Run, key: str, value: str) -> None:
    """Note for the next runs what this one has found out; a preview leaves no trace."""
    if run.publishes:
        state.engine.rows(
            f"alter table {state.tables.record.relation} "
            f"set tblproperties ({literal(key)} = {literal(value)})"
        )


def check_seeds_stayed(state: State, run: Run) -> None:
    """Refuse what was decided by seeds that another command has loaded meanwhile.

    Parts of a run read the seeds at different times, so some would follow the old version and some
    the new one.
    """
    refs = state.engine.refs(list(run.seeds))
    changed = sorted(name for name, read in run.seeds.items() if refs[name].get("main") != read)
    if changed:
        raise ExactlyOnceError(
            f"exactly_once: {', '.join(changed)} was loaded by `dbt seed` while this run was "
            "at work: nothing is published, since parts of it read the earlier version; start "
            "it again"
        )
