"""What a run consumes of the landed tables: all up to a snapshot, which a tag keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt_exactly_once.adapter.engine import literal
from dbt_exactly_once.landing.landed_again import land_again
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.landing.landed_tables import CONSUMED_TAG, LandedTable
from dbt_exactly_once.run import filters
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.publication import mains_of
from dbt_exactly_once.run.seeds import seeds_of_csv
from dbt_exactly_once.run.state import State
from dbt_exactly_once.services.executions import patiently


def landed_rows(state: State, run: Run, name: str) -> LandedRows:
    """How this run reads a landed table; Iceberg is asked once for each pair of snapshots."""
    consumed, landed = run.consumed[name], run.landed[name]
    rows = run.landed_rows.get(name)
    if rows is None or (rows.consumed, rows.landed) != (consumed, landed):
        ledgers = {
            ledger: f"{table.relation} version as of {run.starts[ledger]}"
            for ledger, table in state.tables.ledgers.items()
        }
        rows = LandedRows.of(state.engine, state.tables.landed[name], consumed, landed, ledgers)
        run.landed_rows[name] = rows
        run.messages += rows.warnings()
    return rows


def what_fails(state: State, run: Run) -> list[str]:
    """What may have stopped a run: landed columns that are not those of the contract, or else which
    filters and keys fail, and on which of the deliveries that this run takes."""
    found = [line for table in state.tables.landed.values() for line in _unlike(state, table)]
    if found:
        return found
    deliveries = landed_rows(state, run, "deliveries")
    waiting = (
        f"select landed_delivery_id from {state.tables.ledgers['waiting_deliveries'].relation} "
        f"version as of {run.starts['waiting_deliveries']}"
    )
    rows = deliveries.until_landed()
    # a trigger that takes earlier deliveries may take any
    if not run.queue_facts.get("takes_earlier"):
        rows = (
            f"(select * from {rows} where delivery_id in (select delivery_id from "
            f"{deliveries.unconsumed()}) or delivery_id in ({waiting}))"
        )
    types: dict[str, list[str]] = {}
    expressions = []
    for trigger_name, position, document_type, text in run.found.get("conditions", []):
        types.setdefault(trigger_name, []).append(literal(document_type))
        name = f"condition {position} of trigger {trigger_name}: the filter"
        if text:
            expressions.append((name, text, f"document_type = {literal(document_type)}"))
    for one in run.queue_facts.get("key_expressions", []):
        trigger_name = one["trigger_name"]
        subscribed = ", ".join(types.get(trigger_name, ["null"]))
        taken = f"coalesce(destination = {literal(trigger_name)}, document_type in ({subscribed}))"
        # an earlier run has routed it, whatever the trigger takes today
        waits = f"delivery_id in ({waiting} where trigger_name = {literal(trigger_name)})"
        name = f"trigger {trigger_name}: the key"
        expressions.append((name, one["key"], f"{taken} or {waits}"))
    return list(filters.what_fails(state.engine, expressions, rows))


def _unlike(state: State, table: LandedTable) -> Iterator[str]:
    """A line for each column of a landed table that is not as the contract has it."""
    described = state.engine.rows(f"describe table {table.relation}")
    kinds = {name: kind for name, kind, *_ in reversed(described)}
    for name, kind, _ in table.columns:
        if name not in kinds:
            yield (
                f"{table.relation} has no column {name}: `alter table {table.relation} add column "
                f"{name} {kind}`, or rename the one that has its values"
            )
        elif kinds[name] != kind:
            yield (
                f"{table.relation}: the column {name} is {kinds[name]}, and must be {kind}: rename "
                "the table and start this command again, which makes it anew; then land its rows "
                "again with values of that type. What was decided is not decided again"
            )


def before_consumed(state: State, run: Run, name: str) -> str | None:
    """The parent of the snapshot up to which published runs have consumed a landed table.

    This run counts once it has published. None if there is none, or main no longer descends from
    it.
    """
    consumed = (run.landed if run.published else run.consumed)[name]
    if consumed is None:
        return None
    relation = state.tables.landed[name].relation
    parent = state.engine.parent(relation, consumed)
    main = state.engine.refs([relation])[relation].get("main")
    if parent is None or main is None:
        return None
    return parent if state.engine.commits_between(relation, parent, main) is not None else None


def keep_consumed(
    state: State, consumed: Mapping[str, str | None], refs: Mapping[str, Mapping[str, str]]
) -> None:
    """Keep the consumed snapshot of each landed table from expiring, by a tag.

    Each schema of ledgers has a tag of its own, since several may consume one landed table. Called
    by the run that has consumed the snapshots, and by the next command if that run was killed.
    refs: the current branches and tags of the landed tables.
    """
    tag = tag_of(state)
    for name, snapshot in consumed.items():
        if name not in refs or snapshot is None or refs[name].get(tag) == snapshot:
            continue
        relation = state.tables.landed[name].relation
        if state.engine.has_snapshot(relation, snapshot):
            # workers make branches on a landed table at any time
            patiently(state.engine.set_tag, relation, tag, snapshot)


def tag_of(state: State) -> str:
    """The tag that marks what these ledgers have consumed."""
    return CONSUMED_TAG + state.tables.schema


def follow_event_time(state: State, run: Run) -> None:
    """Set event time back if the row that it comes from was removed from the landed table.

    Upkeep deletes the oldest rows only, so it never removes that one.
    """
    rows = landed_rows(state, run, "deliveries")
    if run.greatest_received_at is None or not rows.may_miss_consumed:
        return
    known = f"timestamp '{run.greatest_received_at}'"
    found = state.engine.rows(
        f"select cast(max(received_at) as string), max(received_at) < {known} "
        f"from {rows.until_landed()} where received_at <= {known}"
    )[0]
    if found[1]:
        run.messages.append(
            f"event time follows the landed rows: from {run.greatest_received_at} to {found[0]}"
        )
        run.greatest_received_at = found[0]


def land_resubmitted(state: State, run: Run, graph: Mapping[str, Any]) -> None:
    """Land rejected rows that somebody has resubmitted, so that this run takes them.

    graph: that of dbt.
    """
    ledgers, landed = state.tables.ledgers, state.tables.landed
    # a trigger that has left the seed is known until it is retired
    triggers = [
        f"select trim(trigger_name) as trigger_name from {relation}"
        for relation, (seed, _) in seeds_of_csv(state, graph).items()
        if seed["name"] == "triggers"
    ]
    triggers.append(f"select trigger_name from {ledgers['trigger_states'].relation}")
    columns = "rejection_id, reason, raw_text"
    run.landed_again = land_again(
        state.engine,
        landed_rows(state, run, "resubmissions").unconsumed(),
        f"(select {columns} from {ledgers['rejected_deliveries'].relation} "
        f"where table_name = 'deliveries' union select {columns} from "
        f"{landed['rejected_landings'].relation} where table_name = 'deliveries')",
        ledgers["journal_entries"].relation,
        ledgers["document_status"].relation,
        f"({' union '.join(triggers)})",
        landed["deliveries"],
    )
    if any(request.delivery_id for request in run.landed_again):
        run.landed["deliveries"] = mains_of(state.tables.refs(landed))["deliveries"]
