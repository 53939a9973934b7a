"""The command `land`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt_exactly_once.commands.place import COUNT, Place, at_place, broker_of
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dbt_exactly_once.landing.brokers import Broker
    from dbt_exactly_once.landing.land import Landing

# what landing can fill: the tables of the source that people write to
LANDING_TABLES = ("deliveries", "trigger_executions", "resubmissions", "trigger_commands")


@click.command()
@at_place
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--table", type=click.Choice(LANDING_TABLES), default=LANDING_TABLES[0])
@click.option("--rabbitmq", metavar="URL", help="Take from RabbitMQ, amqp://...")
@click.option("--amqp", metavar="URL", help="Take from a JMS provider over AMQP 1.0.")
@click.option("--queue", metavar="NAME", help="The queue to take from.")
@click.option("--batch", type=COUNT, default=1000, metavar="N", help="Deliveries in one landing.")
@click.option("--every", default=5.0, metavar="SECONDS", help="How long a landing waits for them.")
@click.option("--until-empty", is_flag=True, help="End when the queue is empty.")
def land(place: Place, files: tuple[str, ...], table: str, **taking: Any) -> int:
    """Append files to a landed table, or what a queue delivers.

    A FILE is JSON lines or CSV (also .gz) or Parquet. Rows that break the contract are kept apart.
    The exit status is 1 where files cannot be read, or rows were rejected and none has landed.
    """
    kind = broker_of("", taking)
    if kind is None and not files:
        raise ExactlyOnceError("nothing to land: name files, or a broker with --rabbitmq or --amqp")
    if kind is not None and (files or not taking["queue"] or table != LANDING_TABLES[0]):
        raise ExactlyOnceError("from a broker deliveries land: name its --queue, and no files")
    land_files = _open_landing(place, table, files)
    if kind is not None:
        _land_from_broker(_connect(**taking), land_files, **taking)
        return 0
    landing = land_files(files)
    click.echo("\n".join(landing.lines()))
    return 1 if landing.failed else 0


def _open_landing(
    place: Place, table: str, files: tuple[str, ...]
) -> Callable[[Sequence[str | Path]], Landing]:
    """A function that lands files, in an open lake; files that cannot be read are told before."""
    from dbt_exactly_once.landing.files import check_readable
    from dbt_exactly_once.landing.land import land
    from dbt_exactly_once.landing.landed_tables import read_landed_tables

    columns = read_landed_tables(place.project.package_folder)[table].types
    for file in files:
        check_readable(file, columns)
    spark, _ = place.open_lake()
    return lambda files: land(spark, place.project, files, table)


def _connect(rabbitmq: str | None, amqp: str | None, queue: str, batch: int, **_: Any) -> Broker:
    from dbt_exactly_once.landing.amqp import Amqp
    from dbt_exactly_once.landing.rabbitmq import RabbitMq

    return RabbitMq(rabbitmq, queue, batch) if rabbitmq else Amqp(str(amqp), queue, batch)


def _land_from_broker(
    broker: Broker,
    land_files: Callable[[Sequence[str | Path]], Landing],
    queue: str,
    batch: int,
    every: float,
    until_empty: bool,
    **_: Any,
) -> None:
    from dbt_exactly_once.landing.brokers import land_from_broker

    with stopped_by_signals() as stop:
        click.echo(f"taking from {queue}")
        taken = land_from_broker(
            broker,
            lambda file: land_files([file]),
            queue,
            click.echo,
            stop,
            most=batch,
            seconds=every,
            until_empty=until_empty,
        )
    click.echo(f"{taken} deliveries taken")
