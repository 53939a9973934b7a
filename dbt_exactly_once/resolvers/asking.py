"""Asks resolvers until all deliveries are answered; names a resolver that kills its worker."""

from __future__ import annotations

import json
import shlex

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.resolvers.hooks import being_asked


def ask_resolvers(engine: Engine, relation: str, columns: str, sql: str | None) -> None:
    """Make the table of answers and fill it.

    sql: selects the answers for the deliveries that have none in `relation` yet; None if there is
    no delivery to ask about. Raises ExactlyOnceError if a resolver has killed its worker.
    """
    engine.rows(f"create or replace table {relation} ({columns}) using iceberg")
    is_cut_short = sql is not None
    answered = 0
    being_asked()
    while is_cut_short:
        try:
            engine.rows(f"insert into {relation} {sql}")
        except Exception as error:
            _explain_death(error)
            raise
        found = engine.rows(f"select count(*), bool_or(is_cut_short) from {relation}")[0]
        is_cut_short = bool(found[1]) and found[0] > answered
        answered = found[0]


def _explain_death(error: BaseException) -> None:
    """Name the resolver that a worker was calling when it died; Spark only reports its death."""
    for trigger_name, resolver, delivery_ids in being_asked():
        ids = ", ".join(delivery_ids[:5]) + (" ..." if len(delivery_ids) > 5 else "")
        held = json.dumps({"delivery_id": delivery_ids[0], "trigger_name": trigger_name})
        raise ExactlyOnceError(
            f"exactly_once: resolver {resolver} of trigger {trigger_name} ended the process "
            f"that asked it about {ids}: nothing is published; correct it, or set a delivery "
            f"aside with `dbt run-operation hold_delivery --args {shlex.quote(held)}` "
            f"({one_line(error)})"
        ) from error
