"""The command `land`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from dbt_exactly_once.commands.place import BROKERS, COUNT, Place, at_place, broker_of
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dbt_exactly_once.landing.brokers import Broker
    from dbt_exactly_once.landing.outcome import Landing

# what landing can fill: the tables of the source that people write to
LANDING_TABLES = ("deliveries", "trigger_executions", "resubmissions", "trigger_commands")
# columns of a delivery that may identify its document
IDS = ("uuid", "track_id", "event_id")


@click.command()
@at_place
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--table", type=click.Choice(LANDING_TABLES), default=LANDING_TABLES[0])
@click.option("--rabbitmq", metavar="URL", help="Take from RabbitMQ, amqp://...")
@click.option("--amqp", metavar="URL", help="Take from a JMS provider over AMQP 1.0.")
@click.option("--queue", metavar="NAME", help="The queue of RabbitMQ or JMS to take from.")
@click.option("--kafka", metavar="BROKERS", help="Take from Kafka, HOST:PORT,...")
@click.option("--topic", metavar="NAME", help="The topic of Kafka to take from.")
@click.option("--group", metavar="NAME", help="The group of Kafka that keeps the offsets.")
@click.option("--kafka-properties", metavar="FILE", help="Of librdkafka, a NAME=VALUE a line.")
@click.option("--record-key", type=click.Choice(IDS), help="The column that a record's key is for.")
@click.option("--sqs", metavar="URL", help="Take from a queue of Amazon SQS.")
@click.option("--batch", type=COUNT, default=1000, metavar="N", help="Deliveries in one landing.")
@click.option("--every", default=5.0, metavar="SECONDS", help="How long a landing waits for them.")
@click.option("--until-empty", is_flag=True, help="End when the queue is empty.")
def land(place: Place, files: tuple[str, ...], table: str, **taking: Any) -> int:
    """Append files to a landed table, or what a queue delivers.

    A FILE is JSON lines, a JSON array or CSV (each also .gz), or Parquet. Rows that break the
    contract are kept apart. The exit status is 1 where files cannot be read, or rows were rejected
    and none has landed.
    """
    kind = broker_of("", taking)
    if kind is None and not files:
        raise ExactlyOnceError(
            f"nothing to land: name files, or a broker with --{', --'.join(BROKERS)}"
        )
    if kind is not None:
        missing = not all(taking[name] for name in BROKERS[kind])
        if files or missing or table != LANDING_TABLES[0]:
            its = " and ".join(f"its --{name}" for name in BROKERS[kind])
            expected = f"{its}, and no files" if its else "no files"
            raise ExactlyOnceError(f"from a broker deliveries land: name {expected}")
    from dbt_exactly_once.landing.files import check_readable
    from dbt_exactly_once.landing.land import land as land_files
    from dbt_exactly_once.landing.landed_tables import read_landed_tables

    columns = read_landed_tables(place.project)[table].types
    for file in files:
        # before Spark starts
        check_readable(file, columns)
    spark, _ = place.open_lake()
    if kind is not None:
        _land_from_broker(kind, lambda file: land_files(spark, place.project, [file]), **taking)
        return 0
    landing = land_files(spark, place.project, files, table)
    click.echo("\n".join(landing.lines()))
    return 1 if landing.failed else 0


def _connect(kind: str, taking: Mapping[str, Any]) -> tuple[Broker, str]:
    """The broker, and the name of what is taken from; each client is imported where it is used."""
    url, queue = taking[kind], taking["queue"]
    if kind == "rabbitmq":
        from dbt_exactly_once.landing.rabbitmq import RabbitMq

        return RabbitMq(url, queue, taking["batch"]), queue
    if kind == "amqp":
        from dbt_exactly_once.landing.amqp import Amqp

        return Amqp(url, queue, taking["batch"]), queue
    if kind == "kafka":
        from dbt_exactly_once.landing.kafka import Kafka

        topic, properties = taking["topic"], taking["kafka_properties"]
        return Kafka(url, topic, taking["group"], properties, taking["record_key"]), topic
    from dbt_exactly_once.landing.sqs import Sqs

    broker = Sqs(url)
    return broker, broker.name


def _land_from_broker(kind: str, land_file: Callable[[Path], Landing], **taking: Any) -> None:
    from dbt_exactly_once.landing.brokers import land_from_broker

    broker, name = _connect(kind, taking)
    with closing(broker), stopped_by_signals() as stop:
        click.echo(f"taking from {name}")
        taken = land_from_broker(
            broker,
            land_file,
            name,
            click.echo,
            stop,
            most=taking["batch"],
            seconds=taking["every"],
            until_empty=taking["until_empty"],
        )
    click.echo(f"{taken} deliveries taken")
