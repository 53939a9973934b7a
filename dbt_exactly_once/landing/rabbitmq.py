"""RabbitMQ, over AMQP 0-9-1: deliveries are taken from a queue, messages sent to an exchange."""

from __future__ import annotations

import logging
from collections import deque
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from dbt_exactly_once.errors import ExactlyOnceError
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

# if a broker takes nothing for so many seconds (out of memory or disk), it is an error
BLOCKED_SECONDS = 30


def _import_pika() -> Any:
    import pika

    # the library would log pages for an error that is reported in a line
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return pika


def _parameters(pika: Any, url: str) -> Any:
    if urlsplit(url).scheme not in ("amqp", "amqps"):
        raise ValueError("the URL has to begin with amqp:// or amqps://")
    try:
        return pika.URLParameters(url)
    except ValueError:
        # its text may hold a part of the password
        raise ValueError(
            "the URL cannot be read; a character such as / # or ? in its password has to be "
            "written as %2F %23 or %3F"
        ) from None


class RabbitMq(Connected):
    """A queue of RabbitMQ, over AMQP 0-9-1.

    A quorum queue counts deliveries (`x-delivery-count`). A classic queue only has the flag
    `redelivered`, which counts as 1.
    """

    def __init__(self, url: str, queue: str, most: int) -> None:
        pika = _import_pika()
        self._queue = queue
        # delivery tags start at 1 in each connection
        self._session = uuid4().hex[:12]
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._last_tag = 0
        self._is_cancelled = False
        try:
            self._connection = pika.BlockingConnection(_parameters(pika, url))
            self._channel = self._connection.channel()
            self._channel.basic_qos(prefetch_count=most)
            self._channel.add_on_cancel_callback(self._note_cancel)
            self._channel.basic_consume(queue, self._note)
        except Exception as error:
            raise unusable(f"queue {queue} of RabbitMQ", url, "taken from", error) from error

    def _note(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        headers = properties.headers or {}
        counted = headers.get("x-delivery-count")
        if counted is None:
            counted = int(method.redelivered)
        row = row_of(
            "RABBITMQ",
            self._queue,
            f"{self._session}-{method.delivery_tag}",
            headers,
            document_type=properties.type or method.routing_key,
            guaranteed=properties.delivery_mode == 2,
            event_id=properties.message_id,
            # in a classic queue this header is the publisher's: landing rejects what is no number
            redelivery_count=counted if isinstance(counted, int) else str(counted),
            document=text_of(body),
        )
        self._waiting.append((method.delivery_tag, row))

    def _note_cancel(self, _method: Any) -> None:
        self._is_cancelled = True

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        end = monotonic() + seconds
        while len(self._waiting) < most and (left := end - monotonic()) > 0:
            if self._is_cancelled and self._waiting:
                break
            if self._is_cancelled:
                raise ExactlyOnceError(
                    f"queue {self._queue} of RabbitMQ was deleted, or its node is gone: start the "
                    "command again when it is there"
                )
            self._connection.process_data_events(time_limit=min(left, PUMP_SECONDS))
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        if taken:
            self._last_tag, _ = taken[-1]
        return [row for _, row in taken]

    def acknowledge(self) -> None:
        self._channel.basic_ack(self._last_tag, multiple=True)
        # the acknowledgement is sent when the connection is serviced
        self._connection.process_data_events(time_limit=0)

    def keep_alive(self) -> None:
        self._connection.process_data_events(time_limit=PUMP_SECONDS)


class RabbitMqPublisher(Connected):
    """An exchange of RabbitMQ; the address is the routing key, a queue of the default exchange."""

    def __init__(self, url: str, exchange: str = "") -> None:
        pika = _import_pika()
        self._url, self._exchange = url, exchange
        self._properties = pika.BasicProperties
        errors = pika.exceptions
        self._undeliverable = (errors.UnroutableError, errors.NackError, errors.ShortStringTooLong)
        try:
            parameters = _parameters(pika, url)
            if parameters.blocked_connection_timeout is None:
                parameters.blocked_connection_timeout = BLOCKED_SECONDS
            self._connection = pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        except Exception as error:
            raise unusable("RabbitMQ", url, "sent to", error) from error

    def send(self, address: str, message_id: str, body: bytes) -> None:
        properties = self._properties(
            delivery_mode=2, message_id=message_id, content_type=JSON_TYPE, type=ERROR_TYPE
        )
        try:
            self._channel.basic_publish(self._exchange, address, body, properties, mandatory=True)
        except self._undeliverable as error:
            raise UndeliverableError(
                f"RabbitMQ has no queue for it ({type(error).__name__})"
            ) from error
        except Exception as error:
            raise unusable("RabbitMQ", self._url, "sent to", error) from error
