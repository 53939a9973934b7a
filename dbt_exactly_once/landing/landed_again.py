"""Rejected landings that somebody has asked to land again: they land before the run reads.

A request names the rejection. Its document, if it has one, is the corrected row (a JSON object
with columns of landing.deliveries), or else a payload that replaces that of the row. The landed
row goes through the run like any other delivery, and is judged again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.landing.json_rows import DECODER, with_document_as_text
from dbt_exactly_once.landing.landed_tables import LandedTable
from dbt_exactly_once.landing.values import NotOfTypeError, type_fault, typed

RESERVED = ("/recovery-", "/resubmission-")
ROW_COLUMNS = {"delivery_id", "received_at", "transport", "guaranteed", "document_type"}


@dataclass(frozen=True)
class LandedAgain:
    """The outcome of a request: the delivery that has landed, or why none has."""

    resubmission_id: str
    rejection_id: str
    trigger_name: str | None
    delivery_id: str | None
    refused_for: str | None


def land_again(
    engine: Engine,
    requests: str,
    rejected: str,
    journal: str,
    statuses: str,
    triggers: str,
    deliveries: LandedTable,
) -> list[LandedAgain]:
    """Land what requests name, each rejection once; a repetition after a kill lands nothing twice.

    requests: the rows of resubmissions that no run has consumed; rejected: relation of all
    rejections; journal, statuses: the ledgers journal_entries and document_status; triggers:
    relation of the names of all triggers.
    """
    outcomes = []
    taken: set[str] = set()
    for found in _requested(engine, requests, rejected, journal, statuses, triggers):
        resubmission_id, *request, is_repeated, is_taken, is_known = found
        trigger_name, requested_at, document, rejection_id, reason, raw_text = request
        request_ids = resubmission_id, rejection_id, trigger_name
        row = _row(raw_text, document)
        refused_for = _refusal(is_repeated, is_taken or rejection_id in taken, is_known, reason)
        if refused_for or row is None:
            outcomes.append(LandedAgain(*request_ids, None, refused_for or "UNREADABLE"))
            continue
        lacks_time = row.get("received_at") is None
        if lacks_time:
            row["received_at"] = f"{requested_at}Z"
        if trigger_name:
            row["destination"] = trigger_name
        try:
            values = _values(row, deliveries.types)
        except NotOfTypeError as error:
            outcomes.append(LandedAgain(*request_ids, None, f"WRONG_TYPE {error}"))
            continue
        taken.add(rejection_id)
        ids = [*_usable(row.get("delivery_id")), rejection_id]
        own = {"landed_at", "received_at"} if lacks_time else {"landed_at"}
        compared = [name for name in values if name not in own]
        delivery_id = _land(engine, deliveries.relation, rejected, values, ids, compared)
        outcomes.append(LandedAgain(*request_ids, delivery_id, None))
    return outcomes


def _requested(
    engine: Engine, requests: str, rejected: str, journal: str, statuses: str, triggers: str
) -> list[tuple[Any, ...]]:
    """The requests to land again, each with its rejection, what the journal has of both, and
    whether its trigger is known. One without an id is refused with those for deliveries."""
    return engine.rows(
        f"""
        select
            requests.resubmission_id,
            requests.trigger_name,
            cast(
                coalesce(
                    min(
                        if(
                            year(requests.requested_at) between 1 and 9999,
                            requests.requested_at,
                            null
                        )
                    ),
                    current_timestamp()
                ) as string
            ) as requested_at,
            min(requests.document) as document,
            rejected.rejection_id,
            min(rejected.reason) as reason,
            min(rejected.raw_text) as raw_text,
            bool_or(journal.reference_id <=> requests.resubmission_id) as is_repeated,
            bool_or(journal.event = 'RESUBMITTED') as is_taken,
            bool_and(
                coalesce(requests.trigger_name, '') = '' or triggers.trigger_name is not null
            ) as is_known
        from {requests} as requests
        inner join {rejected} as rejected on requests.delivery_id = rejected.rejection_id
        left join {journal} as journal
            on
                journal.delivery_id = rejected.rejection_id
                and journal.event in ('RESUBMITTED', 'REFUSED')
        -- without a usable id in its row the rejection is the id of a delivery, which was decided
        left anti join {statuses} as decided
            on
                requests.delivery_id = decided.delivery_id
                and requests.trigger_name = decided.trigger_name
        left join {triggers} as triggers on requests.trigger_name = triggers.trigger_name
        where requests.resubmission_id is not null
        group by requests.resubmission_id, requests.trigger_name, rejected.rejection_id
        order by
            min(requests.requested_at), requests.resubmission_id, requests.trigger_name,
            rejected.rejection_id
        """
    )


def _refusal(is_repeated: bool, is_taken: bool, is_known: bool, reason: str) -> str | None:
    """Why a request is refused, or None; is_taken: whether its rejection has already landed;
    is_known: whether the trigger that it names is one."""
    if is_repeated:
        return "REPEATED"
    if not is_known:
        return "UNKNOWN_TRIGGER"
    if is_taken:
        return "RESUBMITTED"
    return "LANDED" if reason == "REPEATED" else None


def _row(raw_text: str | None, document: str | None) -> dict[str, Any] | None:
    """The row to land, None if none can be read."""
    corrected = _json_object(document)
    if corrected is not None and ROW_COLUMNS & set(corrected):
        return corrected
    row = _json_object(raw_text)
    if row is not None and document is not None:
        row["document"] = document
    return row


def _json_object(text: str | None) -> dict[str, Any] | None:
    text = text or ""
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return with_document_as_text(value, text) if isinstance(value, dict) else None


def _values(row: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, str]:
    """A row as SQL, each value in its column's type, as landing takes it.

    Raises NotOfTypeError, with what is wrong, if a value is not of that type.
    """
    values = {}
    for name, kind in types.items():
        value = row.get(name)
        if value is not None:
            try:
                value = typed(kind, value)
            except NotOfTypeError as error:
                raise NotOfTypeError(type_fault(name, kind, value, error).message) from error
        values[name] = f"cast({literal(value)} as {kind})"
    return values | {"landed_at": "current_timestamp()"}


def _usable(delivery_id: Any) -> list[str]:
    is_id = isinstance(delivery_id, str) and delivery_id
    return [delivery_id] if is_id and not any(part in delivery_id for part in RESERVED) else []


def _land(
    engine: Engine,
    deliveries: str,
    rejected: str,
    values: dict[str, str],
    ids: list[str],
    compared: Sequence[str],
) -> str:
    """Append a row under the first of its ids that is free; returns that id.

    values: the row to land, as SQL; rejected: see land_again; compared: a landed row that is equal
    in these columns is this row, landed by a run that was killed. A row that a run has rejected is
    another row, which takes its id only if it was CONFLICTING.
    """
    for delivery_id in ids:
        values = values | {"delivery_id": literal(delivery_id)}
        same = " and ".join(f"there.{name} <=> {values[name]}" for name in compared)
        text = f"to_json(struct({', '.join(f'there.{name}' for name in values)}))"
        has_landed, is_taken = engine.rows(
            f"select bool_or({same} and rejections.rejection_id is null), "
            "bool_or((rejections.rejection_id is null or rejections.reason = 'CONFLICTING') and "
            "there.received_at is not null and there.guaranteed is not null) "
            f"from {deliveries} as there left join (select * from {rejected} "
            f"where reason != 'REPEATED') as rejections on {text} = rejections.raw_text "
            f"where there.delivery_id = {literal(delivery_id)}"
        )[0]
        if has_landed:
            # a run that was killed has landed it
            return delivery_id
        if not is_taken:
            names, row = ", ".join(values), ", ".join(values.values())
            engine.rows(f"insert into {deliveries} ({names}) select {row}")
            return delivery_id
    return ids[-1]
