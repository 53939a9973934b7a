"""RabbitMQ, over AMQP 0-9-1: deliveries are taken from a queue, messages sent to an exchange."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.extras import require_extra
from dbt_exactly_once.landing.brokers import (
    ERROR_TYPE,
    JSON_TYPE,
    PUMP_SECONDS,
    UndeliverableError,
    cause_of,
    not_reached,
    row_of,
    text_of,
)

# a broker that takes nothing for the moment, for want of memory or disk, says no more than that
BLOCKED_SECONDS = 30


def _import_pika() -> Any:
    require_extra("rabbitmq")
    import pika

    # the library would log pages for an error that is reported in a line
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return pika


def _parameters(pika: Any, url: str) -> Any:
    if urlsplit(url).scheme not in ("amqp", "amqps"):
        raise ValueError("the URL has to begin with amqp:// or amqps://")
    return pika.URLParameters(url)


class RabbitMq:
    """A queue of RabbitMQ, over AMQP 0-9-1.

    A quorum queue counts deliveries (`x-delivery-count`). Of a classic one only the mark
    `redelivered` is known, which counts as 1.
    """

    def __init__(self, url: str, queue: str, most: int) -> None:
        pika = _import_pika()
        self._queue = queue
        # tags count within a connection
        self._session = uuid4().hex[:12]
        self._waiting: deque[dict[str, Any]] = deque()
        self._tags: deque[int] = deque()
        self._received = 0
        try:
            self._connection = pika.BlockingConnection(_parameters(pika, url))
            self._channel = self._connection.channel()
            self._channel.basic_qos(prefetch_count=most)
            self._channel.basic_consume(queue, self._note)
        except Exception as error:
            where = url.rpartition("@")[2]
            raise ExactlyOnceError(
                f"queue {queue} of RabbitMQ at {where} cannot be taken from: {cause_of(error)}"
            ) from error

    def _note(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        headers = properties.headers or {}
        counted = headers.get("x-delivery-count")
        self._tags.append(method.delivery_tag)
        self._waiting.append(
            row_of(
                "RABBITMQ",
                self._queue,
                f"{self._session}-{method.delivery_tag}",
                headers,
                document_type=properties.type or method.routing_key,
                guaranteed=properties.delivery_mode == 2,
                event_id=properties.message_id,
                redelivery_count=int(method.redelivered) if counted is None else int(counted),
                document=text_of(body),
            )
        )

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        end = monotonic() + seconds
        while len(self._waiting) < most and (left := end - monotonic()) > 0:
            self._connection.process_data_events(time_limit=min(left, PUMP_SECONDS))
        rows = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._received = len(rows)
        return rows

    def acknowledge(self) -> None:
        tags = [self._tags.popleft() for _ in range(self._received)]
        self._channel.basic_ack(tags[-1], multiple=True)
        # it is sent when the connection is looked after
        self._connection.process_data_events(time_limit=0)

    def keep_alive(self) -> None:
        self._connection.process_data_events(time_limit=PUMP_SECONDS)

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


class RabbitMqPublisher:
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
            raise not_reached("RabbitMQ", url, error) from error

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
            raise not_reached("RabbitMQ", self._url, error) from error

    def close(self) -> None:
        # what was confirmed is confirmed
        with suppress(Exception):
            self._connection.close()
