"""For JMS, if count and history cannot decide: uses JMSXDeliveryCount and JMSMessageID.

JMS counts deliveries from 1. A message without a `uuid` property is identified by its JMSMessageID
alone. A redelivery keeps that id; a message that is sent twice has two ids, and both run.
"""

from __future__ import annotations

from python_udfs import Delivery, resolver


@resolver("examples.jms_delivery_count")
def jms_delivery_count(delivery: Delivery) -> tuple[str, str]:
    """NEW for a first delivery; a later one may have run before, which only its sender knows."""
    if delivery.redelivery_count == 1:
        return "NEW", "JMSXDeliveryCount is 1"
    if delivery.redelivery_count is None or delivery.redelivery_count < 1:
        return "IN_DOUBT", f"the provider does not count (message {delivery.event_id})"
    return "IN_DOUBT", f"delivery {delivery.redelivery_count} of message {delivery.event_id}"
