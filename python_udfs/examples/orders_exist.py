"""Asks the orders database as order_exists does, in one query for all deliveries of a round.

If the trigger uses history or is serial, no two deliveries of a round have the same key:
deliveries of one key are asked about in order, one in each round.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from python_udfs import TransientError, resolver
from python_udfs.examples.order_exists import orders_database

if TYPE_CHECKING:
    import pyarrow as pa


@resolver("examples.orders_exist")
def orders_exist(deliveries: pa.Table) -> pa.Table:
    """IN_DOUBT for a row without a number, DUPLICATE if its order is there, else NEW."""
    import psycopg
    import pyarrow as pa

    numbers = [_number(document) for document in deliveries["document"].to_pylist()]
    try:
        rows = orders_database().execute(
            "select number from orders where number = any(%s)",
            [[number for number in numbers if number is not None]],
        )
        known = {number for (number,) in rows}
    except psycopg.OperationalError as error:
        orders_database.forget()
        raise TransientError(f"orders database: {error}") from error
    return pa.table(
        {
            "status": [
                "IN_DOUBT" if number is None else "DUPLICATE" if number in known else "NEW"
                for number in numbers
            ]
        }
    )


def _number(document: str | None) -> str | None:
    try:
        return json.loads(document or "")["number"]
    except (ValueError, KeyError, TypeError):
        return None
