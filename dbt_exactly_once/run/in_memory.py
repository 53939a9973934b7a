"""Small tables that a run reads several times, as temporary views of its session.

To plan and run the scan of a table takes Spark 50 ms or more, even for few rows. Rows in memory
take none of that, and Spark optimizes away a join with an empty relation.
"""

from __future__ import annotations

from dbt_exactly_once.adapter.engine import Copy, Engine
from dbt_exactly_once.run.current_run import Run

# the ledgers that a run reads several times as they were published
KEPT_LEDGERS = ("open_documents", "rejected_deliveries", "trigger_states", "waiting_deliveries")


def keep_in_memory(engine: Engine, run: Run, model: str, relation: str) -> None:
    """Keep the rows of a scratch table or view for this run, if they are few and the engine can.

    If it is known what the rows follow from, the copy is kept for the session, unless another run
    has written to the tables of this one, see guard_scratch. The macro `from_memory` looks up the
    copy of a relation.
    """
    if model in run.rows_follow_from:
        kept = _keep_version(engine, run, relation, run.rows_follow_from[model])
        if kept is not None:
            run.unproven_copies.append(kept.name)
        return
    name = f"{relation.rpartition('.')[2]}_of_{run.run_id.replace('-', '_')}"
    number = engine.keep_in_memory(relation, name)
    if number is not None:
        run.copies.append(name)
        _read_from(run, relation, Copy(run.run_id, name, number))


def is_in_memory(engine: Engine, run: Run, model: str, relation: str) -> bool:
    """Whether the session has the rows of a scratch table or view as this run would write them."""
    return engine.version_in_memory(relation) == run.rows_follow_from[model]


def keep_snapshot(
    engine: Engine, run: Run, relation: str, snapshot: str, stands_for: str | None = None
) -> None:
    """Keep the rows of a snapshot for the session; later runs reuse the copy until they change.

    stands_for: what the SQL of the run reads in place of the copy, by default the relation.
    """
    _keep_version(engine, run, relation, snapshot, snapshot, stands_for)


def _keep_version(
    engine: Engine,
    run: Run,
    relation: str,
    version: str,
    snapshot: str | None = None,
    stands_for: str | None = None,
) -> Copy | None:
    kept = engine.keep_version_in_memory(relation, version, snapshot)
    if kept is not None:
        _read_from(run, stands_for or relation, kept)
    return kept


def _read_from(run: Run, relation: str, copy: Copy) -> None:
    run.in_memory[relation] = copy.name
    run.notes[copy.name] = copy.notes
    if copy.rows == 0:
        run.empty.add(copy.name)


def keep_ledgers(engine: Engine, run: Run, relations: dict[str, str]) -> None:
    """Keep the ledgers of KEPT_LEDGERS, as the last run has published them.

    relations: those of the ledgers by name.
    """
    for ledger in KEPT_LEDGERS:
        relation, snapshot = relations[ledger], run.starts[ledger]
        keep_snapshot(engine, run, relation, snapshot, f"{relation} version as of {snapshot}")
