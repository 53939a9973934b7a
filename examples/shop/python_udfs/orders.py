"""What this project answers and does in Python: the names stand in the seeds.

Settles nothing and calls nobody yet: name `orders.booked_before` as the resolver of a trigger, and
`orders.ship` as the service of a condition, which `exactly-once worker` then calls.
"""

from __future__ import annotations

from python_udfs import Delivery, Work, resolver, service


@resolver("orders.booked_before")
def booked_before(delivery: Delivery) -> tuple[str, str]:
    """Ask the system that books orders whether it has this one; here nobody can be asked."""
    return "IN_DOUBT", f"nobody was asked about {delivery.document_key}"


@service("orders.ship")
def ship(work: Work) -> str:
    """Hand an order to whoever ships it; delivery_id as the reference makes that repeatable."""
    return f"shipped {work.document_json['order']['number']} as {work.delivery_id}"
