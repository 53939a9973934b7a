"""Kafka: deliveries are taken from a topic by a consumer group."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.brokers import PUMP_SECONDS, row_of, text_of

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# seconds that the brokers have to answer a request
ANSWER_SECONDS = 10
# seconds for the group to assign its partitions, and for these to deliver or report their end
SILENT_SECONDS = 120
# what the lander relies on; the file of properties may not set these
OWN_PROPERTIES = {
    # offsets are committed after the append, and by nobody else
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    # it is an error if records are deleted before they were taken
    "auto.offset.reset": "error",
    # partitions are released when the group asks for them, between two landings
    "group.protocol": "classic",
    "partition.assignment.strategy": "range,roundrobin",
}


class Kafka:
    """A topic of Kafka, as a member of a consumer group.

    Kafka counts no deliveries, but a record keeps its offset: a second delivery has the same id and
    content, and landing recognises it. A rebalance waits until a landing has ended, since only
    `receive` answers the group's requests.
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        group: str,
        properties_file: str | None = None,
        key_column: str | None = None,
    ) -> None:
        """properties_file: properties of librdkafka, one a line; key_column: takes record keys."""
        import confluent_kafka

        self._kafka = confluent_kafka
        self._brokers, self._topic, self._key_column = brokers, topic, key_column
        # partitions of this member; None until the group has assigned them
        self._assigned: set[int] | None = None
        self._at_end: set[int] = set()
        self._waits_since = monotonic()
        # of the current batch: partition, offset, row
        self._taken: list[tuple[int, int, dict[str, Any]]] = []
        self._last_error = ""
        self._all_down = False
        properties = {**read_properties(properties_file), **OWN_PROPERTIES}
        properties |= {"bootstrap.servers": brokers, "group.id": group, "error_cb": self._note}
        # the library would log several lines for an error that is reported in one
        silent = logging.Logger("kafka", level=logging.CRITICAL + 1)
        try:
            self._consumer = confluent_kafka.Consumer(properties, logger=silent)
        except confluent_kafka.KafkaException as error:
            raise self._not_taken(error.args[0].str()) from error
        self._ask_brokers()
        self._consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke)

    def receive(self, most: int, seconds: float) -> list[dict[str, Any]]:
        """See Broker; returns no rows only if all partitions are at their end.

        The seconds count from the moment when the group has assigned the partitions.
        """
        self._taken.clear()
        self._waits_since = monotonic()
        while len(self._taken) < most:
            passed = monotonic() - self._waits_since
            if passed >= seconds and (self._taken or self._is_at_end()):
                break
            if passed >= seconds + SILENT_SECONDS:
                raise self._not_taken(self._last_error or "the group has no answer for its members")
            try:
                message = self._consumer.poll(PUMP_SECONDS)
            except self._kafka.KafkaException as error:
                raise self._not_taken(error.args[0].str()) from error
            if self._all_down:
                self._ask_brokers()
            if message is not None:
                self._take(message)
        return [row for _, _, row in self._taken]

    def acknowledge(self) -> None:
        """Commit for each partition the offset after the last record that was received."""
        behind: dict[int, int] = {}
        for partition, offset, _ in self._taken:
            behind[partition] = max(offset + 1, behind.get(partition, 0))
        place = self._kafka.TopicPartition
        offsets = [place(self._topic, partition, offset) for partition, offset in behind.items()]
        try:
            self._check(self._consumer.commit(offsets=offsets, asynchronous=False))
        except self._kafka.KafkaException as error:
            raise ExactlyOnceError(error.args[0].str()) from error
        self._taken.clear()

    def keep_alive(self) -> None:
        # the client's own thread sends heartbeats
        sleep(PUMP_SECONDS)

    def close(self) -> None:
        """Leave the group, so that its other members need not wait for a time-out."""
        with suppress(Exception):
            self._consumer.close()

    def _take(self, message: Any) -> None:
        error, partition = message.error(), message.partition()
        if error is None:
            self._at_end.discard(partition)
            self._taken.append((partition, message.offset(), self._row(message)))
        elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._at_end.add(partition)
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise self._not_taken(
                f"partition {partition} has no record any more where the group stands, at offset "
                f"{message.offset()}, so records may be gone that were never taken; to go on with "
                "those that are there, stop the group and set its offsets with "
                "kafka-consumer-groups.sh --reset-offsets --to-earliest"
            )
        else:
            raise self._not_taken(error.str())

    def _row(self, message: Any) -> dict[str, Any]:
        headers = {name: text_of(value) for name, value in message.headers() or ()}
        ids = {"event_id": headers.get("event_id")}
        if self._key_column:
            ids[self._key_column] = ids.get(self._key_column) or text_of(message.key())
        _, milliseconds = message.timestamp()
        return row_of(
            "KAFKA",
            self._topic,
            f"{message.partition()}-{message.offset()}",
            headers,
            # the record's own, so that a second arrival has the same content
            received_at=time_of(milliseconds),
            document_type=self._topic,
            guaranteed=True,
            document=text_of(message.value()),
            **ids,
        )

    def _is_at_end(self) -> bool:
        return self._assigned is not None and self._assigned <= self._at_end

    def _assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Continue at the committed offsets; a new group starts at the beginning."""
        places = consumer.committed(list(partitions), timeout=ANSWER_SECONDS) if partitions else []
        self._check(places)
        for place in places:
            if place.offset < 0:
                place.offset = self._kafka.OFFSET_BEGINNING
        consumer.assign(places)
        self._assigned = {place.partition for place in partitions}
        self._at_end.clear()
        self._waits_since = monotonic()

    def _revoke(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        """Forget what was received and not landed: the next member with the partition gets it."""
        gone = {place.partition for place in partitions}
        self._taken = [taken for taken in self._taken if taken[0] not in gone]
        self._assigned = None

    def _check(self, places: Sequence[Any]) -> None:
        """Raise if the group's coordinator has reported an error for a partition."""
        for place in places:
            if place.error is not None:
                raise self._kafka.KafkaException(place.error)

    def _note(self, error: Any) -> None:
        """Keep the errors that the client reports of its connections."""
        if error.code() == self._kafka.KafkaError._ALL_BROKERS_DOWN:
            self._all_down = True
        else:
            self._last_error = error.str()

    def _ask_brokers(self) -> None:
        """Raise if the brokers cannot be reached or do not have the topic."""
        self._all_down = False
        try:
            found = self._consumer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        except self._kafka.KafkaException as error:
            # the client reports why when it is polled
            self._consumer.poll(0)
            raise self._not_taken(self._last_error or error.args[0].str()) from error
        error = found.topics[self._topic].error
        if error is not None:
            raise self._not_taken(error.str())

    def _not_taken(self, cause: str) -> ExactlyOnceError:
        # without the name of the connection, and how long it has tried
        cause = re.sub(r"^\S+/\S+: | \(after \d+ms in state .*\)$", "", cause)
        return ExactlyOnceError(
            f"topic {self._topic} of Kafka at {self._brokers} cannot be taken from: {cause}"
        )


def time_of(milliseconds: int) -> str:
    """The time of a record in ISO 8601; an impossible one is left for landing to reject."""
    try:
        return (EPOCH + timedelta(milliseconds=milliseconds)).isoformat()
    except OverflowError:
        return f"{milliseconds} milliseconds"


def read_properties(file: str | None) -> dict[str, str]:
    """The properties of a file, one a line, as librdkafka names them."""
    if file is None:
        return {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExactlyOnceError(f"{file} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise ExactlyOnceError(f"{file}, line {number} is not NAME=VALUE")
        if name in OWN_PROPERTIES or name in ("bootstrap.servers", "group.id"):
            raise ExactlyOnceError(
                f"{file}, line {number}: {name} is set by the lander, take the line away"
            )
        found[name] = value
    return found
