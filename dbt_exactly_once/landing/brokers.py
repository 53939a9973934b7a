"""Brokers: deliveries are taken from them, and error documents are sent to them.

Deliveries are landed first and acknowledged afterwards.

If a lander is killed in between, its deliveries are not acknowledged. The broker delivers them
again, with a higher count, and they land as second deliveries of the same documents. So nothing is
lost, and the project finds the copies.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dbt_exactly_once.errors import ExactlyOnceError, one_line

if TYPE_CHECKING:
    from dbt_exactly_once.landing.outcome import Landing

# seconds for which the connection is serviced at a time
PUMP_SECONDS = 0.2
# what a publisher may set in the headers of a message
HEADERS = ("document_type", "destination", "uuid", "track_id", "errors_to")

JSON_TYPE = "application/json"
# the message type of error documents, which tells them from other messages of the same queue
ERROR_TYPE = "error_document"


class Broker(Protocol):
    """A queue that deliveries are taken from."""

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        """Rows of `deliveries`: up to `most`, of what comes within `seconds`."""
        ...

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        ...

    def keep_alive(self) -> None:
        """Service the connection for a moment; called while nothing is received."""
        ...

    def close(self) -> None:
        """Close the connection; what was not acknowledged will be delivered again."""
        ...


class UndeliverableError(Exception):
    """The broker can be reached, but does not take a message for its address."""


class Publisher(Protocol):
    """A broker that messages are sent to."""

    def send(self, address: str, message_id: str, body: bytes) -> None:
        """Send a persistent message and wait until the broker has confirmed it.

        Raises UndeliverableError if the broker has no queue for that address or refuses it.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Connected:
    """Base of the classes that have a connection to a broker."""

    _connection: Any

    def close(self) -> None:
        # an error loses nothing: acknowledgements and confirmations are complete already
        with suppress(Exception):
            self._connection.close()


def land_from_broker(
    broker: Broker,
    land_file: Callable[[Path], Landing],
    name: str,
    echo: Callable[[str], None],
    stop: threading.Event,
    most: int = 1000,
    seconds: float = 5.0,
    until_empty: bool = False,
) -> int:
    """Land what comes, in batches, until asked to stop; returns how many deliveries were taken.

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
            # the rows that landing rejects are kept with this name
            file = Path(folder) / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.jsonl"
            write_rows(file, rows)
            with _kept_alive(broker):
                landing = land_file(file)
            try:
                broker.acknowledge()
            except Exception as error:
                raise ExactlyOnceError(
                    f"{name}: {len(rows)} deliveries have landed, but they could not be "
                    "acknowledged, so the broker will deliver them again, and the copies will be "
                    f"found: start the command again ({one_line(error)})"
                ) from error
            taken += len(rows)
            for line in landing.lines():
                echo(line)
            file.unlink()
    return taken


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write JSON lines; bytes that are not UTF-8 stay as they are, and landing rejects them."""
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
    """A row of `deliveries`; columns: values, unless a header of the same name has one.

    tag: identifies the delivery in its queue. Kafka numbers its records, so a second arrival has
    the tag of the first; with other transports each arrival has its own.
    """
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
    """Answer the broker's heartbeats while a landing runs."""
    done = threading.Event()

    def pump() -> None:
        while not done.is_set():
            try:
                broker.keep_alive()
            except Exception:
                # the acknowledgement fails too, and reports the error
                return

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def cause_of(error: BaseException) -> str:
    """The cause of an error, in words; pika wraps it in errors of its own, sometimes several."""
    while inner := [part for part in error.args if isinstance(part, BaseException)]:
        error = inner[0]
    if not error.args and isinstance(getattr(error, "exception", None), BaseException):
        return cause_of(error.exception)
    text = getattr(error, "strerror", None) or one_line(error)
    return text or type(error).__name__


def unusable(what: str, url: str, use: str, error: BaseException) -> ExactlyOnceError:
    """The error of a broker that cannot be "taken from" or "sent to", without its password."""
    return ExactlyOnceError(
        f"{what} at {url.rpartition('@')[2]} cannot be {use}: {cause_of(error)}"
    )
