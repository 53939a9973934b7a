"""Rejected landings that somebody wants taken again: they land again before the run reads.

A request names the rejection. Its document, where it has one, is the corrected row (a JSON object
with columns of landing.deliveries) or the payload to put in place of the row's. What lands goes
through the run like any other delivery, and is judged anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.engine import Engine, literal

RESERVED = ("/recovery-", "/resubmission-")
ROW_COLUMNS = {"delivery_id", "received_at", "transport", "guaranteed", "document_type"}


@dataclass(frozen=True)
class LandedAgain:
    """What became of a request: the delivery that has landed, or why none has."""

    resubmission_id: str
    delivery_id: str | None
    refused_for: str | None


def land_again(
    engine: Engine,
    requests: str,
    rejected: str,
    journal: str,
    deliveries: str,
    transports: str,
    columns: Mapping[str, str],
) -> list[LandedAgain]:
    """Land what requests name, each rejection once; a repetition after a kill lands nothing twice.

    requests: the rows of resubmissions that no run has consumed; rejected: relation of all
    rejections; journal: the ledger journal_entries; transports: the seed; columns: names and types
    of deliveries.
    """
    found = engine.rows(
        f"""
        select
            requests.resubmission_id,
            min(requests.trigger_name) as trigger_name,
            cast(min(requests.requested_at) as string) as requested_at,
            min(requests.document) as document,
            min(rejected.rejection_id) as rejection_id,
            min(rejected.reason) as reason,
            min(rejected.raw_text) as raw_text,
            bool_or(journal.reference_id <=> requests.resubmission_id) as is_repeated,
            bool_or(journal.event = 'RESUBMITTED') as is_taken
        from {requests} as requests
        inner join {rejected} as rejected on requests.delivery_id = rejected.rejection_id
        left join {journal} as journal
            on
                journal.delivery_id = rejected.rejection_id
                and journal.event in ('RESUBMITTED', 'REFUSED')
        group by requests.resubmission_id
        order by min(requests.requested_at), requests.resubmission_id
        """
    )
    became = []
    taken: set[str] = set()
    for resubmission_id, *request, is_repeated, is_taken in found:
        trigger_name, requested_at, document, rejection_id, reason, raw_text = request
        row = _row(raw_text, document)
        if is_repeated:
            refused_for = "REPEATED"
        elif is_taken or rejection_id in taken:
            refused_for = "RESUBMITTED"
        elif reason == "REPEATED":
            refused_for = "LANDED"
        elif row is None:
            refused_for = "UNREADABLE"
        else:
            refused_for = None
        if refused_for or row is None:
            became.append(LandedAgain(resubmission_id, None, refused_for))
            continue
        taken.add(rejection_id)
        if row.get("received_at") is None:
            # it is taken now
            row["received_at"] = f"{requested_at}Z"
        if trigger_name:
            row["destination"] = trigger_name
        typed = f"from_json({literal(json.dumps(row))}, {literal(_schema(columns))})"
        values = {name: f"row.{name}" for name in columns} | {"landed_at": "current_timestamp()"}
        delivery_id = _land(
            engine,
            f"(select {typed} as row)",
            deliveries,
            transports,
            values,
            [*_usable(row.get("delivery_id")), rejection_id],
            requested_at,
        )
        became.append(LandedAgain(resubmission_id, delivery_id, None))
    return became


def _row(raw_text: str | None, document: str | None) -> dict[str, Any] | None:
    """The row to land, None where there is none to be read."""
    corrected = _json_object(document)
    if corrected is not None and ROW_COLUMNS & set(corrected):
        return corrected
    row = _json_object(raw_text)
    if row is not None and document is not None:
        row["document"] = document
    return row


def _json_object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _schema(columns: Mapping[str, str]) -> str:
    return f"struct<{', '.join(f'{name}: {kind}' for name, kind in columns.items())}>"


def _usable(delivery_id: Any) -> list[str]:
    is_id = isinstance(delivery_id, str) and delivery_id
    return [delivery_id] if is_id and not any(part in delivery_id for part in RESERVED) else []


def _land(
    engine: Engine,
    row: str,
    deliveries: str,
    transports: str,
    values: dict[str, str],
    ids: list[str],
    requested_at: str,
) -> str:
    """Append a row under the first of its ids that is free; returns that.

    row: a relation with the row to land as `row`; values: what to land, over `row`.
    """
    for delivery_id in ids:
        values = values | {"delivery_id": literal(delivery_id)}
        same = " and ".join(
            f"there.{name} <=> {value}" for name, value in values.items() if name != "landed_at"
        )
        # a row of this id that was rejected stands there as well
        has_landed, is_taken = engine.rows(
            f"select bool_or({same} and there.landed_at >= timestamp '{requested_at}'), "
            "bool_or(there.received_at is not null and there.guaranteed is not null and "
            f"known.transport is not null) from {deliveries} as there cross join {row} "
            f"left join {transports} as known on there.transport = trim(known.transport) "
            f"where there.delivery_id = {literal(delivery_id)}"
        )[0]
        if has_landed:
            # by a run that was killed
            return delivery_id
        if not is_taken:
            engine.rows(
                f"insert into {deliveries} ({', '.join(values)}) "
                f"select {', '.join(values.values())} from {row}"
            )
            return delivery_id
    return ids[-1]
