"""`maintain`: compact the tables, delete old rows and snapshots, and files that nothing refers to.

Compaction changes no row. It makes one commit on main of each ledger, and a row in published_runs
names the new snapshot before there is a second commit. So main is recognized by its parent, even if
another program has let the published snapshot expire. Of the landed tables, those are compacted
that have a row for each delivery: a run opens every file of deliveries to look for repeated ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from dbt_exactly_once.adapter.engine import time_literal
from dbt_exactly_once.adapter.tables import Table
from dbt_exactly_once.errors import one_line
from dbt_exactly_once.landing.landed_rows import LandedRows, landed_delivery_id
from dbt_exactly_once.landing.landed_tables import CONSUMED_TAG
from dbt_exactly_once.run.publication import HISTORY
from dbt_exactly_once.run.state import State
from dbt_exactly_once.run.upkeep import Upkeep

# not the others: of their rows with one id the first counts, by commit, file and position
COMPACTED_LANDED = ("deliveries", "trigger_executions")
MERGE_ALL = {"min-input-files": "2", "delete-file-threshold": "1"}
# a larger file would be written anew in each upkeep until it has reached that size
MERGE_SMALL = {"target-file-size-bytes": str(64 << 20)}
# each statement reads the list of a table's snapshots, 0.8 KB each: the 8,640 that runs every 10
# seconds make in a day would take three seconds of each run
MOST_SNAPSHOTS = 500

# conditions that spare old rows which later runs and rebuild_history still read. Journal entries:
# requests and ids that were used, how documents ended that did not complete, what services reported
# before a decision, and which success has settled a doubt (without force such a doubt is not
# processed again). Statuses: those that share the key of a doubt that stays, since they tell which
# document it was that succeeded
KEPT = {
    "document_status": """
        and not (
            document_key is not null
            and (trigger_name, document_key) in (
                select
                    trigger_name,
                    document_key
                from {document_status}
                where
                    status = 'IN_DOUBT'
                    and document_key is not null
                    and received_at >= timestamp '{bound}'
            )
        )
    """,
    "journal_entries": """
        and event not in ('RESUBMITTED', 'REFUSED', 'LOST', 'INTERRUPTED', 'EARLY')
        and not (
            event in ('SUCCESS', 'LATE_SUCCESS')
            and (delivery_id, trigger_name) in (
                select
                    documents.delivery_id,
                    documents.trigger_name
                from {document_status} as documents
                left semi join {document_status} as doubts
                    on
                        documents.trigger_name = doubts.trigger_name
                        and documents.document_key = doubts.document_key
                        and doubts.status = 'IN_DOUBT'
            )
        )
    """,
}


def maintain(
    state: State, upkeep: Upkeep, variables: Mapping[str, Any], with_orphans: bool
) -> list[str]:
    """Compact, delete old rows, snapshots and files that nothing refers to; returns what it freed.

    variables: keep_snapshots_hours (of no more than MOST_SNAPSHOTS), and keep_statuses_days,
    keep_journal_days and keep_landed_days, None to keep all. with_orphans: whether files of killed
    runs are looked for, which takes as long as all the rest.
    """
    for table in (*state.tables.ledgers.values(), *state.tables.landed.values()):
        _add_properties(state, table)
    # records the compaction of an interrupted maintain
    upkeep.record_compaction()
    messages = _forget_old_rows(state, upkeep, variables)
    for name, table in state.tables.ledgers.items():
        messages += _compact(state, name, table)
    upkeep.record_compaction()
    for table in state.tables.ledgers.values():
        procedure = f"{state.engine.catalog()}.system.rewrite_manifests"
        state.engine.rows(f"call {procedure}('{state.tables.full_name(table)}')")
    upkeep.record_compaction()
    for name in COMPACTED_LANDED:
        messages += _compact_landed(state, name)
    now = datetime.now(timezone.utc)
    kept = timedelta(hours=float(variables["keep_snapshots_hours"]))
    older_than = now - kept
    expires: list[tuple[Table, datetime]] = []
    for name, table in {**state.tables.ledgers, **state.tables.landed}.items():
        bound = max(filter(None, [older_than, _first_kept(state, table)]))
        consumed = _consumed(state, upkeep, name) if name in state.tables.landed else ()
        times = (_committed_at(state, table, at) for at in consumed)
        expires.append((table, min([bound, *filter(None, times)])))
    for table in state.tables.existing_scratch():
        expires.append((table, now))
    # Iceberg refuses less than a day, since a file may belong to a write in progress
    orphans_before = now - max(kept, timedelta(days=1, minutes=1))
    for table, time in expires:
        if "main" in state.engine.refs([table.relation])[table.relation]:
            messages += _expire(state, table, time)
            messages += _delete_orphans(state, table, orphans_before) if with_orphans else []
    return messages or ["nothing to compact, to forget or to delete"]


def _add_properties(state: State, table: Table) -> None:
    """Give a table of an earlier version the properties that it lacks."""
    there = state.engine.properties(table.relation) or {}
    lacking = {key: value for key, value in table.properties.items() if key not in there}
    if lacking:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in lacking.items())
        state.engine.rows(f"alter table {table.relation} set tblproperties ({listed})")


def _forget_old_rows(state: State, upkeep: Upkeep, variables: Mapping[str, Any]) -> list[str]:
    """Delete whole days of statuses, journal entries and landed rows that nothing needs."""
    event_time = upkeep.event_time
    if event_time is None:
        return []
    messages = []
    statements = {}
    statuses = state.tables.ledgers["document_status"].relation
    for name, column, days in (
        ("document_status", "received_at", variables["keep_statuses_days"]),
        ("journal_entries", "happened_at", variables["keep_journal_days"]),
        ("deliveries", "received_at", variables["keep_landed_days"]),
        ("trigger_executions", "recorded_at", variables["keep_landed_days"]),
    ):
        if days is None:
            continue
        table = state.tables.ledgers.get(name) or state.tables.landed[name]
        bound, is_held_back = _kept_from(state, event_time, days)
        if is_held_back:
            messages.append(
                f"{name}: rows from {bound} on stay, since a document of that day is in doubt and "
                "nobody has looked at it: see in_doubt_documents, then "
                "`dbt run-operation mark_looked_at`"
            )
        condition = f"{column} < timestamp '{bound}'"
        forgotten = _count(state, table, condition)
        kept = KEPT.get(name, "").format(document_status=statuses, bound=bound)
        if forgotten and kept:
            # if no row is kept, whole days are deleted without reading their rows
            but_kept = _count(state, table, condition + kept)
            condition += kept if but_kept < forgotten else ""
            forgotten = but_kept
        if not forgotten:
            continue
        if name in state.tables.landed and _is_unread(state, upkeep, name, condition):
            messages.append(
                f"{name}: rows from before {bound} stay until runs of all schemas whose tag "
                f"{CONSUMED_TAG}SCHEMA it has have consumed them; drop the tag of one that is gone"
            )
            continue
        statements[name] = f"delete from {{table}} where {condition}"
        messages.append(f"{name}: {forgotten} rows from before {bound} forgotten")
    changes = {n: sql for n, sql in statements.items() if n in state.tables.ledgers}
    if statements:
        # also if only landed rows are deleted: audits over all runs must know of it
        upkeep.publish("retention", changes)
    for name, statement in statements.items():
        if name not in changes:
            relation = state.tables.landed[name].relation
            state.engine.rows(statement.replace("{table}", relation))
    return messages


def _kept_from(state: State, event_time: str, days: int) -> tuple[str, bool]:
    """From which day on rows stay, and whether a document in doubt makes more stay than wanted."""
    earliest = f"coalesce(min(received_at), timestamp '{event_time}')"
    found = state.engine.rows(
        "select cast(date_trunc('day', least(wanted, undecided, in_doubt)) as string), "
        "date_trunc('day', in_doubt) < date_trunc('day', least(wanted, undecided)) "
        f"from (select timestamp '{event_time}' - make_dt_interval({int(days)}) as wanted, "
        f"(select {earliest} from {_undecided(state)}) as undecided, "
        f"(select {earliest} from {_in_doubt(state)}) as in_doubt)"
    )
    return found[0][0], found[0][1]


def _count(state: State, table: Table, condition: str) -> int:
    return int(state.engine.rows(f"select count(*) from {table.relation} where {condition}")[0][0])


def _consumed(state: State, upkeep: Upkeep, name: str) -> set[str | None]:
    """The snapshots up to which runs have consumed a landed table: for these ledgers, and for those
    of other schemas that read the same landed tables."""
    relation = state.tables.landed[name].relation
    refs = state.engine.refs([relation])[relation]
    of_others = {at for tag, at in refs.items() if tag.startswith(CONSUMED_TAG)}
    return {upkeep.consumed.get(name), *of_others}


def _is_unread(state: State, upkeep: Upkeep, name: str, condition: str) -> bool:
    """Whether runs have yet to consume some rows of a landed table that match a condition."""
    table = state.tables.landed[name]
    main = state.engine.refs([table.relation])[table.relation].get("main")
    for consumed in _consumed(state, upkeep, name):
        rows = LandedRows.of(state.engine, table, consumed, main, {})
        # KNOWN: only the ledgers can tell which rows a run would take
        if rows.way == "KNOWN" or state.engine.rows(
            f"select 1 from {rows.unconsumed()} where {condition} limit 1"
        ):
            return True
    return False


def _undecided(state: State) -> str:
    """Open documents, and waiting deliveries with a landed row: they need that row and status."""
    ledgers = state.tables.ledgers
    return (
        f"(select landed_received_at as received_at from {ledgers['waiting_deliveries'].relation} "
        "where reason != 'LANDED_ROW_GONE' union all "
        f"select landed_received_at from {ledgers['open_documents'].relation})"
    )


def _in_doubt(state: State) -> str:
    """Documents in doubt that nobody has looked at: status and landed row are all that is left of
    them, and later decisions tell whether they have come again or succeeded. What counts as a look
    is the same as in the view in_doubt_documents."""
    ledgers, commands = state.tables.ledgers, state.tables.landed["trigger_commands"].relation
    return (
        "(select least(doubts.received_at, doubts.landed_received_at) as received_at "
        f"from {ledgers['document_status'].relation} as doubts "
        f"inner join {state.tables.record.relation} as runs on doubts.run_id = runs.run_id "
        f"left anti join {commands} as looks on looks.command = 'LOOKED_AT' "
        "and looks.trigger_name = doubts.trigger_name and looks.issued_at >= runs.published_at "
        "left anti join (select journal.delivery_id, journal.trigger_name, runs.run_number "
        f"from {ledgers['journal_entries'].relation} as journal "
        f"inner join {state.tables.record.relation} as runs on journal.run_id = runs.run_id "
        "where journal.event = 'RESUBMITTED') as again "
        "on again.trigger_name = doubts.trigger_name "
        f"and {landed_delivery_id('again.delivery_id')} "
        f"= {landed_delivery_id('doubts.delivery_id')} "
        "and again.run_number > runs.run_number "
        "where doubts.status = 'IN_DOUBT')"
    )


def _compact(
    state: State, name: str, table: Table, options: Mapping[str, str] = MERGE_ALL
) -> list[str]:
    """Merge many files into few; history is sorted, so that a lookup of a key reads few files."""
    order = "strategy => 'sort', sort_order => 'key_hash', " if name == HISTORY else ""
    listed = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    files, made = state.engine.rows(
        f"call {state.engine.catalog()}.system.rewrite_data_files("
        f"table => '{state.tables.full_name(table)}', {order}options => map({listed}))"
    )[0][:2]
    return [f"{name}: {made} files made of {files}"] if files else []


def _compact_landed(state: State, name: str) -> list[str]:
    """Merge small files of a landed table, unless another program changes them at that moment."""
    try:
        return _compact(state, name, state.tables.landed[name], MERGE_SMALL)
    except Exception as error:
        return [f"{name}: not compacted, the next upkeep tries again: {one_line(error)}"]


def _committed_at(state: State, table: Table, snapshot: str | None) -> datetime | None:
    """When a consumed snapshot was committed. Runs and views read what has landed since along the
    snapshots of main from there, so none of these may expire."""
    return _time_of_snapshot(state, table, f"where snapshot_id = {snapshot or 0}")


def _first_kept(state: State, table: Table) -> datetime | None:
    """When the oldest of the newest MOST_SNAPSHOTS was committed; None if there are fewer."""
    return _time_of_snapshot(
        state, table, f"order by committed_at desc limit 1 offset {MOST_SNAPSHOTS - 1}"
    )


def _time_of_snapshot(state: State, table: Table, which: str) -> datetime | None:
    found = state.engine.rows(
        f"select cast(unix_micros(committed_at) as string) from {table.relation}.snapshots {which}"
    )
    return datetime.fromtimestamp(int(found[0][0]) / 1e6, timezone.utc) if found else None


def _expire(state: State, table: Table, older_than: datetime) -> list[str]:
    """Expire snapshots that no tag names, with their files."""
    expired = state.engine.expire_snapshots(table.relation, older_than)
    return [f"{table.name}: {expired} old snapshots deleted, with their files"] if expired else []


def _delete_orphans(state: State, table: Table, older_than: datetime) -> list[str]:
    """Delete files that no snapshot names."""
    orphans = state.engine.rows(
        f"call {state.engine.catalog()}.system.remove_orphan_files("
        f"table => '{state.tables.full_name(table)}', older_than => {time_literal(older_than)})"
    )
    return [f"{table.name}: {len(orphans)} files of killed runs deleted"] if orphans else []
