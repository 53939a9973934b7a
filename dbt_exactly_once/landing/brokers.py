"""Brokers: deliveries are taken from them, and error documents are sent to them.

Deliveries are landed first and acknowledged afterwards.

A lander that is killed in between leaves its deliveries unacknowledged; the broker delivers them
again, with a higher count, and they land as second deliveries of the same documents. So nothing is
lost, and the project finds the copies.
"""

from __future__ import annotations

import json
import logging
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any, Protocol
from uuid import uuid4

from dbt_exactly_once.errors import ExactlyOnceError, one_line

# how often the connection is looked after, in seconds
PUMP_SECONDS = 0.2
# what a publisher may set in the headers of a message
HEADERS = ("document_type", "destination", "uuid", "track_id", "errors_to")


class Broker(Protocol):
    """A queue that deliveries are taken from."""

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        """Rows of `deliveries`: up to `most`, what has come after `seconds`."""
        ...

    def acknowledge(self) -> None:
        """Tell the broker that all that was received may be forgotten."""
        ...

    def keep_alive(self) -> None:
        """Look after the connection for a moment; called while nothing is received."""
        ...


class UndeliverableError(Exception):
    """A broker that is there does not take a message for its address."""


class Publisher(Protocol):
    """A broker that messages are sent to."""

    def send(self, address: str, message_id: str, body: bytes) -> None:
        """Send a persistent message and wait until the broker has confirmed it.

        Raises UndeliverableError where the broker has no queue for that address or refuses it.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def land_from_broker(
    broker: Broker,
    land_file: Callable[[Path], object],
    name: str,
    say: Callable[[str], None],
    stop: threading.Event,
    most: int = 1000,
    seconds: float = 5.0,
    until_empty: bool = False,
) -> int:
    """Land what comes, in batches, until told to stop; returns how many deliveries were taken.

    land_file: commits the rows of a JSON lines file, or raises.
    """
    taken = 0
    with tempfile.TemporaryDirectory(prefix="exactly-once-broker-") as folder:
        while not stop.is_set():
            rows = broker.receive(most, seconds)
            if not rows:
                if until_empty:
                    break
                continue
            # rejected rows name the file they came in
            file = Path(folder) / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.jsonl"
            write_rows(file, rows)
            with _kept_alive(broker):
                landing = land_file(file)
            try:
                broker.acknowledge()
            except Exception as error:
                raise ExactlyOnceError(
                    f"{name}: {len(rows)} deliveries have landed, but the connection was lost "
                    "before they were acknowledged, so the broker will deliver them again, and "
                    f"the next run finds the copies: start the command again ({one_line(error)})"
                ) from error
            taken += len(rows)
            say(str(landing))
            file.unlink()
    return taken


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """JSON lines; bytes that are no text stay as they are, for landing to reject and keep."""
    with file.open("wb") as out:
        for row in rows:
            text = json.dumps(row, ensure_ascii=False)
            out.write(text.encode("utf-8", "surrogateescape") + b"\n")


def text_of(body: object) -> str | None:
    """The text of a message's body."""
    if body is None:
        return None
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body).decode("utf-8", "surrogateescape")
    return body if isinstance(body, str) else json.dumps(body, default=str)


def row_of(
    transport: str,
    queue: str,
    tag: object,
    headers: Mapping[str, Any],
    **columns: Any,
) -> dict[str, Any]:
    """A row of `deliveries`, with an id of its own: each arrival is a delivery."""
    found = {name: headers.get(name) for name in HEADERS}
    return {
        "delivery_id": f"{queue}-{tag}",
        "received_at": datetime.now(timezone.utc).isoformat(),
        "transport": transport,
        **{name: None if value is None else str(value) for name, value in found.items()},
        **{name: value for name, value in columns.items() if found.get(name) is None},
    }


@contextmanager
def _kept_alive(broker: Broker) -> Iterator[None]:
    """Answer the broker's heartbeats while a landing takes its time."""
    done = threading.Event()

    def pump() -> None:
        while not done.is_set():
            try:
                broker.keep_alive()
            except Exception:
                # told when it comes to acknowledging
                return

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _import_pika(purpose: str) -> Any:
    try:
        import pika
    except ImportError as error:
        raise ExactlyOnceError(
            f"pika is needed to {purpose} RabbitMQ: pip install 'exactly-once[rabbitmq]'"
        ) from error
    # it would log pages of what is told in a line
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return pika


class RabbitMq:
    """A queue of RabbitMQ, over AMQP 0-9-1.

    A quorum queue counts deliveries (`x-delivery-count`). Of a classic one only the mark
    `redelivered` is known, which counts as 1.
    """

    def __init__(self, url: str, queue: str, most: int) -> None:
        pika = _import_pika("take from")
        self._queue = queue
        # tags count within a connection
        self._session = uuid4().hex[:12]
        self._waiting: deque[dict[str, Any]] = deque()
        self._tags: deque[int] = deque()
        self._received = 0
        try:
            self._connection = pika.BlockingConnection(pika.URLParameters(url))
            self._channel = self._connection.channel()
            self._channel.basic_qos(prefetch_count=most)
            self._channel.basic_consume(queue, self._note)
        except Exception as error:
            where = url.rpartition("@")[2]
            raise ExactlyOnceError(
                f"queue {queue} of RabbitMQ at {where} cannot be taken from: "
                f"{type(error).__name__} {one_line(error)}"
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


class Amqp:
    """A queue over AMQP 1.0, as JMS providers such as ActiveMQ Artemis offer it.

    AMQP counts failed deliveries from 0, JMS deliveries from 1: the row has what JMS would say.
    """

    def __init__(self, url: str, queue: str, most: int) -> None:
        try:
            from proton.utils import BlockingConnection
        except ImportError as error:
            raise ExactlyOnceError(
                "python-qpid-proton is needed to take over AMQP 1.0: "
                "pip install 'exactly-once[amqp]'"
            ) from error
        self._queue = queue
        self._session = uuid4().hex[:12]
        self._number = 0
        self._received = 0
        try:
            self._connection = BlockingConnection(url, timeout=30, heartbeat=30)
            self._receiver = self._connection.create_receiver(queue, credit=most)
        except Exception as error:
            where = url.rpartition("@")[2]
            raise ExactlyOnceError(
                f"queue {queue} at {where} cannot be taken from: "
                f"{type(error).__name__} {one_line(error)}"
            ) from error

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


JSON_TYPE = "application/json"
# what the messages are, for those who take others from the same queue
ERROR_TYPE = "error_document"
# a broker that takes nothing for the moment, for want of memory or disk, says no more than that
BLOCKED_SECONDS = 30


def _not_reached(broker: str, url: str, error: BaseException) -> ExactlyOnceError:
    return ExactlyOnceError(
        f"{broker} at {url.rpartition('@')[2]} cannot be sent to: "
        f"{type(error).__name__} {one_line(error)}"
    )


class RabbitMqPublisher:
    """An exchange of RabbitMQ; the address is the routing key, a queue of the default exchange."""

    def __init__(self, url: str, exchange: str = "") -> None:
        pika = _import_pika("send to")
        self._url, self._exchange = url, exchange
        self._properties = pika.BasicProperties
        errors = pika.exceptions
        self._undeliverable = (errors.UnroutableError, errors.NackError, errors.ShortStringTooLong)
        try:
            parameters = pika.URLParameters(url)
            if parameters.blocked_connection_timeout is None:
                parameters.blocked_connection_timeout = BLOCKED_SECONDS
            self._connection = pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        except Exception as error:
            raise _not_reached("RabbitMQ", url, error) from error

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
            raise _not_reached("RabbitMQ", self._url, error) from error

    def close(self) -> None:
        # what was confirmed is confirmed
        with suppress(Exception):
            self._connection.close()


class AmqpPublisher:
    """Addresses over AMQP 1.0, such as queues of ActiveMQ Artemis."""

    def __init__(self, url: str) -> None:
        try:
            from proton.utils import BlockingConnection
        except ImportError as error:
            raise ExactlyOnceError(
                "python-qpid-proton is needed to send over AMQP 1.0: "
                "pip install 'exactly-once[amqp]'"
            ) from error
        self._url = url
        self._senders: dict[str, Any] = {}
        try:
            self._connection = BlockingConnection(url, timeout=30, heartbeat=30)
        except Exception as error:
            raise _not_reached("the broker", url, error) from error

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
            # waits for the broker's word, and fails where that is not that it was accepted
            self._senders[address].send(message)
        except (LinkDetached, SendException) as error:
            self._senders.pop(address, None)
            raise UndeliverableError(
                f"the broker refuses it ({type(error).__name__} {one_line(error)})"
            ) from error
        except Exception as error:
            raise _not_reached("the broker", self._url, error) from error

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()
