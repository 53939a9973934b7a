"""A record of Kafka is one delivery, however often its offset is read; none is passed over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from kafka_broker import KafkaBroker, running_kafka
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.brokers import land_from_broker
from dbt_exactly_once.landing.files import read_batches
from dbt_exactly_once.landing.kafka import Kafka, read_properties, time_of
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.landing.outcome import Landing

Rows = Callable[[str], list[tuple[Any, ...]]]
THEN = datetime(2026, 5, 1, 12, 0, 0, 123000, tzinfo=timezone.utc)


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    name = f"orders.{uuid4().hex[:8]}"
    kafka.make_topic(name)
    return name


def orders(number: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"value": f'{{"order": {place}}}', "key": f"k{place}", **more} for place in range(number)
    ]


def take(
    broker: KafkaBroker,
    topic: str,
    land_file: Callable[[Path], object],
    group: str = "lake",
    key_column: str | None = None,
) -> tuple[int, list[str]]:
    """Land until the topic is empty; how many were taken and the lines."""
    said: list[str] = []
    with closing(Kafka(broker.brokers, topic, group, key_column=key_column)) as member:
        taken = land_from_broker(
            member, land_file, topic, said.append, threading.Event(), seconds=1, until_empty=True
        )
    return taken, said


def ids_of(file: Path) -> list[str]:
    return [row["delivery_id"] for batch in read_batches(file) for row in batch.rows if row]


# ---------- what lands


def test_records_land_with_what_kafka_says_of_them(
    kafka: KafkaBroker, topic: str, spark: SparkSession, project: Project, rows: Rows
) -> None:
    # as a producer may that gives microseconds for milliseconds
    far = 1_777_636_800_000_000
    kafka.make_topic(f"{topic}.x", message_timestamp_after_max_ms=str(2**63 - 1))
    milliseconds = int(THEN.timestamp() * 1000)
    kafka.publish(
        f"{topic}.x",
        [
            {
                "value": '{"order": {"number": "A1"}}',
                "key": "A1",
                "timestamp": milliseconds,
                "headers": [
                    ("uuid", b"u1"),
                    ("document_type", b"order.created"),
                    ("destination", b"orders_by_history"),
                    ("errors_to", b"errors.orders"),
                    ("event_id", b"e1"),
                    ("other", b"\xff"),
                    ("track_id", None),
                ],
            },
            {"value": None, "key": "A2", "timestamp": milliseconds},
            {"value": b'{"name": "\xff"}', "timestamp": milliseconds},
            {"value": "far", "timestamp": far},
        ],
    )
    taken, said = take(
        kafka, f"{topic}.x", lambda file: land(spark, project, [file]), key_column="track_id"
    )
    assert taken == 4
    assert (
        said[0]
        == "deliveries: landed 2, rejected 2 (IMPOSSIBLE_RECEIVED_AT 1, NOT_UTF8 1), repeated 0"
    )
    landed = rows(
        "select delivery_id, received_at, transport, document_type, destination, guaranteed, uuid, "
        "track_id, event_id, redelivery_count, errors_to, document "
        f"from {project.landing_schema}.deliveries order by delivery_id"
    )
    then = landed[0][1]
    assert then.astimezone(timezone.utc) == THEN
    assert landed == [
        (
            f"{topic}.x-0-0",
            then,
            "KAFKA",
            "order.created",
            "orders_by_history",
            True,
            "u1",
            "A1",
            "e1",
            None,
            "errors.orders",
            '{"order": {"number": "A1"}}',
        ),
        (f"{topic}.x-0-1", then, "KAFKA", f"{topic}.x", None, True, None, "A2", *[None] * 4),
    ]
    rejected = rows(
        f"select reason, raw_text from {project.landing_schema}.rejected_landings order by 1"
    )
    assert [reason for reason, _ in rejected] == ["IMPOSSIBLE_RECEIVED_AT", "NOT_UTF8"]
    assert f"{far} milliseconds" in rejected[0][1]
    assert kafka.committed(f"{topic}.x", "lake") == [4]


def test_a_key_becomes_an_id_only_where_it_is_said_to_be_one(
    kafka: KafkaBroker, topic: str
) -> None:
    kafka.publish(topic, [{"value": "a", "key": "k"}, {"value": "b", "headers": {"event_id": "e"}}])
    found = []
    for group, column in (("none", None), ("event", "event_id"), ("uuid", "uuid")):
        with closing(Kafka(kafka.brokers, topic, group, key_column=column)) as member:
            rows = member.receive(2, 5)
        found.append([(row["uuid"], row["track_id"], row["event_id"]) for row in rows])
    assert found == [
        [(None, None, None), (None, None, "e")],
        [(None, None, "k"), (None, None, "e")],
        [("k", None, None), (None, None, "e")],
    ]


def test_a_replayed_offset_is_one_delivery(
    kafka: KafkaBroker, topic: str, spark: SparkSession, project: Project, rows: Rows
) -> None:
    kafka.publish(topic, orders(20))

    def land_file(file: Path) -> Landing:
        return land(spark, project, [file])

    assert take(kafka, topic, land_file)[0] == 20
    kafka.publish(topic, orders(5))
    # another group begins at the beginning, as one does whose offsets were set back
    taken, said = take(kafka, topic, land_file, group="again")
    assert taken == 25
    assert said == ["deliveries: landed 5, rejected 0, repeated 20"]
    [(count, ids)] = rows(
        f"select count(*), count(distinct delivery_id) from {project.landing_schema}.deliveries"
    )
    assert (count, ids) == (25, 25)


def test_a_transaction_that_was_aborted_does_not_land(kafka: KafkaBroker, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.brokers, "transactional.id": topic})
    producer.init_transactions(60)
    for value, end in (("aborted", "abort_transaction"), ("kept", "commit_transaction")):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(60)
        getattr(producer, end)(60)
    landed: list[str] = []

    def keep(file: Path) -> Landing:
        landed.append(file.read_text())
        return Landing("deliveries", 1)

    assert take(kafka, topic, keep)[0] == 1
    assert '"kept"' in landed[0]


# ---------- offsets


def test_offsets_are_committed_after_the_append_and_never_before(
    kafka: KafkaBroker, topic: str
) -> None:
    kafka.publish(topic, orders(3))

    def fail(_: Path) -> Landing:
        assert kafka.committed(topic, "lake") == [-1001]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        take(kafka, topic, fail)
    assert kafka.committed(topic, "lake") == [-1001]

    landed: list[str] = []

    def keep(file: Path) -> Landing:
        landed.extend(ids_of(file))
        return Landing("deliveries", len(landed))

    assert take(kafka, topic, keep)[0] == 3
    assert landed == [f"{topic}-0-{offset}" for offset in range(3)]
    assert kafka.committed(topic, "lake") == [3]
    assert take(kafka, topic, keep)[0] == 0


def test_a_compacted_topic_lands_with_its_gaps(kafka: KafkaBroker) -> None:
    topic = f"compacted.{uuid4().hex[:8]}"
    kafka.make_topic(
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    for value in range(5):
        kafka.publish(topic, [{"value": f"{value}", "key": f"k{number}"} for number in range(4)])
        # a segment that is written to is not compacted
        time.sleep(0.2)
    kafka.publish(topic, [{"value": "last", "key": "last"}])
    deadline = time.monotonic() + 120
    while len(left := kafka.offsets(topic)) > 10:
        assert time.monotonic() < deadline, left
        time.sleep(0.5)
    assert left[0] > 0, "the first records are gone"

    landed: list[str] = []

    def keep(file: Path) -> Landing:
        landed.extend(ids_of(file))
        return Landing("deliveries", len(landed))

    # it may be compacted further until it is taken
    assert take(kafka, topic, keep)[0] == len(landed)
    taken = [int(name.rpartition("-")[2]) for name in landed]
    assert set(kafka.offsets(topic)) <= set(taken) <= set(left)
    assert kafka.committed(topic, "lake") == [21]
    kafka.publish(topic, [{"value": "more", "key": "more"}])
    landed.clear()
    assert take(kafka, topic, keep)[0] == 1
    assert landed == [f"{topic}-0-21"]


def test_records_that_are_gone_before_they_were_taken_are_told(
    kafka: KafkaBroker, topic: str
) -> None:
    kafka.publish(topic, orders(10))
    kafka.delete_before(topic, 2)
    with closing(Kafka(kafka.brokers, topic, "lake")) as member:
        assert len(member.receive(3, 5)) == 3, "a new group begins with what is there"
        member.acknowledge()
    kafka.delete_before(topic, 8)
    with (
        closing(Kafka(kafka.brokers, topic, "lake")) as member,
        pytest.raises(ExactlyOnceError) as error,
    ):
        member.receive(10, 5)
    assert error.value.msg == (
        f"topic {topic} of Kafka at {kafka.brokers} cannot be taken from: partition "
        "0 has no record any more where the group stands, at offset 5, so records may be gone that "
        "were never taken; to go on with those that are there, stop the group and set its offsets "
        "with kafka-consumer-groups.sh --reset-offsets --to-earliest"
    )
    assert kafka.committed(topic, "lake") == [5]


# ends the process at once when the rows are appended and no offset is committed
KILLED_BEFORE_COMMIT = """
import os, signal, sys
from dbt_exactly_once import cli
from dbt_exactly_once.landing.kafka import Kafka
Kafka.acknowledge = lambda _: os.kill(os.getpid(), signal.SIGKILL)
cli.main(sys.argv[1:])
"""


def test_what_a_killed_lander_appended_and_did_not_commit_lands_as_repeats(
    kafka: KafkaBroker,
    topic: str,
    spark: SparkSession,
    profiles_dir: Path,
    lake: Path,
    tmp_path: Path,
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    kafka.publish(topic, orders(30))
    properties = tmp_path / "kafka.properties"
    # the group need not wait long until it finds out that a member is gone
    properties.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=1000\n")

    def lander(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, *command, "land", "--kafka", kafka.brokers, "--topic", topic),
                *("--group", "lake", "--kafka-properties", str(properties)),
                *("--batch", "10", "--every", "2", "--until-empty"),
                *("--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)),
            ],
            cwd=PROJECT_FOLDER,
            env={**os.environ, "EXACTLY_ONCE_LAKE": str(lake)},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert lander("-c", KILLED_BEFORE_COMMIT).returncode == -signal.SIGKILL
    assert kafka.committed(topic, "lake") == [-1001]
    assert runs.rows("select count(*) from {landing}.deliveries") == [(10,)]

    done = lander("-m", "dbt_exactly_once.cli")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"taking from {topic}",
        "deliveries: landed 0, rejected 0, repeated 10",
        "deliveries: landed 10, rejected 0, repeated 0",
        "deliveries: landed 10, rejected 0, repeated 0",
        "30 deliveries taken",
    ]
    assert kafka.committed(topic, "lake") == [30]
    assert runs.rows("select count(*), count(distinct delivery_id) from {landing}.deliveries") == [
        (30, 30)
    ]


# ---------- rebalances


@contextmanager
def landing(
    broker: KafkaBroker, topic: str, landed: list[str], errors: list[BaseException]
) -> Iterator[None]:
    """A member that lands small batches, slowly, until told to stop."""
    stop = threading.Event()

    def keep(file: Path) -> Landing:
        time.sleep(0.1)
        landed.extend(ids_of(file))
        return Landing("deliveries", 1)

    def run() -> None:
        try:
            with closing(Kafka(broker.brokers, topic, "lake")) as member:
                land_from_broker(member, keep, topic, lambda _: None, stop, most=5, seconds=0.5)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_members_come_and_go_and_each_record_lands_once(kafka: KafkaBroker) -> None:
    topic = f"shared.{uuid4().hex[:8]}"
    kafka.make_topic(topic, partitions=4)
    for partition in range(4):
        kafka.publish(topic, orders(60, partition=partition))
    expected = {f"{topic}-{place}-{offset}" for place in range(4) for offset in range(60)}
    first: list[str] = []
    second: list[str] = []
    errors: list[BaseException] = []
    with landing(kafka, topic, first, errors):
        wait_for(lambda: len(first) >= 20, "the first member lands")
        with landing(kafka, topic, second, errors):
            wait_for(lambda: len(second) >= 20, "the second member gets partitions")
            seen = len(first)
            wait_for(lambda: len(first) > seen + 10, "the first member goes on")
        wait_for(lambda: len(first) + len(second) >= len(expected), "all land")
        time.sleep(1)
    assert not errors
    assert set(first) | set(second) == expected
    again = {name for name, count in Counter(first + second).items() if count > 1}
    assert not again, "an orderly rebalance waits for a landing"
    assert kafka.committed(topic, "lake", partitions=4) == [60] * 4


def test_what_was_received_and_not_landed_goes_with_its_partition(kafka: KafkaBroker) -> None:
    topic = f"shared.{uuid4().hex[:8]}"
    kafka.make_topic(topic, partitions=2)
    for partition in range(2):
        kafka.publish(topic, orders(10, partition=partition))
    received: dict[str, list[str]] = {}

    def receive(name: str, most: int, seconds: float) -> None:
        rows = members[name].receive(most, seconds)
        received[name] = sorted(row["delivery_id"] for row in rows)

    members = {"first": Kafka(kafka.brokers, topic, "lake")}
    try:
        # waits for more than there is, until the other member has come
        thread = threading.Thread(target=receive, args=("first", 1000, 15))
        thread.start()
        wait_for(lambda: len(members["first"]._taken) == 20, "all is received")
        members["second"] = Kafka(kafka.brokers, topic, "lake")
        receive("second", 10, 5)
        thread.join()
    finally:
        for member in members.values():
            member.close()
    assert len(received["first"]) == len(received["second"]) == 10
    assert not set(received["first"]) & set(received["second"])


def test_a_landing_that_outlasts_its_membership_is_told_and_nothing_is_lost(
    kafka: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    kafka.publish(topic, orders(8))
    properties = tmp_path / "kafka.properties"
    properties.write_text("max.poll.interval.ms=6000\nsession.timeout.ms=6000\n")
    slow: list[str] = []
    quick: list[str] = []

    def keep(file: Path) -> Landing:
        quick.extend(ids_of(file))
        return Landing("deliveries", len(quick))

    def land_slowly(file: Path) -> Landing:
        slow.extend(ids_of(file))
        # another member takes the partition while it lands
        assert take(kafka, topic, keep)[0] == 8
        return Landing("deliveries", len(slow))

    with (
        closing(Kafka(kafka.brokers, topic, "lake", str(properties))) as member,
        pytest.raises(ExactlyOnceError) as error,
    ):
        land_from_broker(member, land_slowly, topic, print, threading.Event(), most=5, seconds=5)
    assert slow == quick[:5]
    assert quick == [f"{topic}-0-{offset}" for offset in range(8)]
    assert kafka.committed(topic, "lake") == [8]
    assert error.value.msg == (
        f"{topic}: 5 deliveries have landed, but they could not be acknowledged, so the broker "
        "will deliver them again, and the copies will be found: start the command again "
        "(Commit failed: Broker: Unknown member)"
    )


# ---------- what a person is told


def test_a_broker_that_is_down_is_told_with_its_cause(
    kafka_jars: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_kafka(kafka_jars, tmp_path) as broker:
        broker.make_topic("orders")
        member = Kafka(broker.brokers, "orders", "lake")
        assert member.receive(1, 0.5) == []
        with pytest.raises(ExactlyOnceError) as missing:
            Kafka(broker.brokers, "invoices", "lake")
        capfd.readouterr()
        broker.kill()
        with pytest.raises(ExactlyOnceError) as while_taking:
            land_from_broker(member, print, "orders", print, threading.Event(), seconds=0.5)
        member.close()
    with pytest.raises(ExactlyOnceError) as at_start:
        Kafka(broker.brokers, "orders", "lake")
    where = f"of Kafka at {broker.brokers} cannot be taken from:"
    refused = f"Connect to ipv4#{broker.brokers} failed: Connection refused"
    assert missing.value.msg == (f"topic invoices {where} Broker: Unknown topic or partition")
    assert at_start.value.msg == f"topic orders {where} {refused}"
    assert while_taking.value.msg == f"topic orders {where} {refused}"
    assert capfd.readouterr() == ("", ""), "no lines of the client's"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# a comment\n\nsession.timeout.ms\n", "line 3 is not NAME=VALUE"),
        (
            "sasl.username=me\nenable.auto.commit = true",
            "line 2: enable.auto.commit is set by the lander, take the line away",
        ),
        ("group.id=other", "line 1: group.id is set by the lander, take the line away"),
    ],
)
def test_a_file_of_properties_that_cannot_be_taken_is_told(
    text: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(text)
    with pytest.raises(ExactlyOnceError) as error:
        read_properties(str(file))
    assert error.value.msg.endswith(f"{file}, {told}")
    file.write_text("# who we are\nsasl.password = a=b \n")
    assert read_properties(str(file)) == {"sasl.password": "a=b"}
    file.unlink()
    with pytest.raises(ExactlyOnceError, match=r"kafka.properties cannot be read: .*No such file"):
        read_properties(str(file))


def test_a_property_that_the_client_does_not_know_is_told(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    file = tmp_path / "kafka.properties"
    file.write_text("session.timeout=6000\n")
    with pytest.raises(ExactlyOnceError) as error:
        Kafka("127.0.0.1:1", "orders", "lake", properties_file=str(file))
    assert error.value.msg.endswith(
        "topic orders of Kafka at 127.0.0.1:1 cannot be taken from: "
        'No such configuration property: "session.timeout"'
    )


def test_a_time_of_a_record_is_one_of_iso_8601_where_there_is_such_a_time() -> None:
    assert time_of(1_777_636_800_123) == "2026-05-01T12:00:00.123000+00:00"
    assert time_of(1_777_636_800_000_000) == "1777636800000000 milliseconds"
