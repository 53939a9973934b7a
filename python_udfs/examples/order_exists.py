"""Asks the database that the trigger's service writes to whether it has the order.

It needs `pip install 'dbt-exactly-once[postgres]'`, ORDERS_DATABASE in the environment of the Spark
workers (such as postgresql://reader@db/orders) and a table orders with the document's number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from python_udfs import Delivery, TransientError, once_per_worker, resolver

if TYPE_CHECKING:
    import psycopg


@once_per_worker
def orders_database() -> Iterator[psycopg.Connection]:
    """A connection for each worker process; it only reads."""
    import psycopg

    connection = psycopg.connect(os.environ["ORDERS_DATABASE"], autocommit=True, connect_timeout=5)
    with connection:
        connection.read_only = True
        yield connection


@resolver("examples.order_exists")
def order_exists(delivery: Delivery) -> tuple[str, str] | str:
    """DUPLICATE if the order is there, NEW if it is not, IN_DOUBT if the document has no number."""
    import psycopg

    order = delivery.document_json
    number = order.get("number") if isinstance(order, dict) else None
    if number is None:
        return "IN_DOUBT", "the document has no order number"
    try:
        found = (
            orders_database()
            .execute("select created_at from orders where number = %s", [number])
            .fetchone()
        )
    except psycopg.OperationalError as error:
        # down, restarted or out of connections: it will be back, so the answer can wait
        orders_database.forget()
        raise TransientError(f"orders database: {error}") from error
    if found is None:
        return "NEW"
    return "DUPLICATE", f"order {number} is there since {found[0]:%Y-%m-%d %H:%M}"
