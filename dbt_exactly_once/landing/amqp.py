"""Brokers that speak AMQP 1.0, as JMS providers such as ActiveMQ Artemis do."""

from __future__ import annotations

from time import monotonic
from typing import Any
from uuid import uuid4

from dbt_exactly_once.errors import one_line
from dbt_exactly_once.landing.brokers import (
    ERROR_TYPE,
    JSON_TYPE,
    PUMP_SECONDS,
    Connected,
    UndeliverableError,
    row_of,
    text_of,
    unusable,
)


class Amqp(Connected):
    """A queue over AMQP 1.0.

    AMQP counts failed deliveries from 0, JMS deliveries from 1: the row has the count of JMS.
    """

    def __init__(self, url: str, queue: str, most: int) -> None:
        from proton.utils import BlockingConnection

        self._queue = queue
        self._session = uuid4().hex[:12]
        self._number = 0
        self._received = 0
        try:
            self._connection = BlockingConnection(url, timeout=30, heartbeat=30)
            self._receiver = self._connection.create_receiver(queue, credit=most)
        except Exception as error:
            raise unusable(f"queue {queue}", url, "taken from", error) from error

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        from proton import Timeout

        end = monotonic() + seconds
        rows: list[dict[str, Any]] = []
        while len(rows) < most and (left := end - monotonic()) > 0:
            try:
                message = self._receiver.receive(timeout=left)
            except Timeout:
                break
            self._number += 1
            headers = dict(message.properties or {})
            rows.append(
                row_of(
                    "JMS",
                    self._queue,
                    f"{self._session}-{self._number}",
                    headers,
                    document_type=message.subject,
                    guaranteed=bool(message.durable),
                    event_id=None if message.id is None else str(message.id),
                    redelivery_count=message.delivery_count + 1,
                    document=text_of(message.body),
                )
            )
        self._received = len(rows)
        return rows

    def acknowledge(self) -> None:
        for _ in range(self._received):
            self._receiver.accept()

    def keep_alive(self) -> None:
        from proton import Timeout

        try:
            self._connection.wait(lambda: False, timeout=PUMP_SECONDS)
        except Timeout:
            return


class AmqpPublisher(Connected):
    """Addresses over AMQP 1.0, such as queues of ActiveMQ Artemis."""

    def __init__(self, url: str) -> None:
        from proton.utils import BlockingConnection

        self._url = url
        self._senders: dict[str, Any] = {}
        try:
            self._connection = BlockingConnection(url, timeout=30, heartbeat=30)
        except Exception as error:
            raise unusable("the broker", url, "sent to", error) from error

    def send(self, address: str, message_id: str, body: bytes) -> None:
        from proton import Message
        from proton.utils import LinkDetached, SendException

        message = Message(
            id=message_id,
            durable=True,
            subject=ERROR_TYPE,
            content_type=JSON_TYPE,
            body=body.decode("utf-8"),
        )
        try:
            if address not in self._senders:
                self._senders[address] = self._connection.create_sender(address)
            # waits for the broker, and raises if it has not accepted the message
            self._senders[address].send(message)
        except (LinkDetached, SendException) as error:
            self._senders.pop(address, None)
            raise UndeliverableError(
                f"the broker refuses it ({type(error).__name__} {one_line(error)})"
            ) from error
        except Exception as error:
            raise unusable("the broker", self._url, "sent to", error) from error
