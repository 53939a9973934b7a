"""The commands `worker` and `send-errors`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dbt_exactly_once.commands.place import COUNT, Command, Place, at_place, broker_of
from dbt_exactly_once.errors import ExactlyOnceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_exactly_once.landing.brokers import Publisher
    from dbt_exactly_once.services.error_sender import ErrorSender


def error_broker_options(prefix: str, does: str) -> Callable[[Command], Command]:
    """The options of the broker through which error documents go."""
    exchange = "The exchange of RabbitMQ.  [default: the one whose routing keys are queues]"
    options = (
        ("rabbitmq", "URL", f"{does} through RabbitMQ, errors_to is the routing key."),
        ("amqp", "URL", f"{does} over AMQP 1.0, errors_to is the address."),
        ("exchange", "NAME", exchange),
    )

    def add(command: Command) -> Command:
        for name, metavar, meaning in reversed(options):
            option = click.option(f"--{prefix}{name}", name, metavar=metavar, help=meaning)
            command = option(command)
        return command

    return add


def _sender(
    place: Place,
    lake: tuple[SparkSession, str],
    rabbitmq: str | None,
    amqp: str | None,
    exchange: str | None,
) -> ErrorSender:
    """A sender of error documents, through the broker that the options name."""
    from dbt_exactly_once.landing.amqp import AmqpPublisher
    from dbt_exactly_once.landing.rabbitmq import RabbitMqPublisher
    from dbt_exactly_once.services.error_sender import ErrorSender

    def publisher() -> Publisher:
        return RabbitMqPublisher(rabbitmq, exchange or "") if rabbitmq else AmqpPublisher(str(amqp))

    return ErrorSender(*lake, f"{place.project.landing_schema}.sent_errors", publisher, click.echo)


@click.command()
@at_place
@click.option("--service", multiple=True, metavar="NAME", help="One of them; repeat it for more.")
@click.option("--once", is_flag=True, help="End when nothing is left to do or to try again.")
@click.option("--concurrency", type=COUNT, default=1, metavar="N", help="Documents at once.")
@click.option("--poll", default=5.0, metavar="SECONDS", help="How often to look for work.")
@error_broker_options("send-errors-", "Also send error documents")
def worker(
    place: Place,
    service: tuple[str, ...],
    once: bool,
    concurrency: int,
    poll: float,
    **broker: str | None,
) -> None:
    """Call your services for the documents to be processed.

    The services are those that modules of python_udfs register.
    """
    from dbt_exactly_once.adapter.engine import Engine, run_in
    from dbt_exactly_once.resolvers.hooks import load_hooks
    from dbt_exactly_once.services.python_services import choose_services, lists_work, worker_of
    from dbt_exactly_once.services.worker import finished_at_signals

    sends = broker_of("send-errors-", broker)
    hooks = load_hooks(place.project.folder)
    services = choose_services(hooks, service)
    spark, schema = place.open_lake()
    engine = Engine(run_in(spark))
    if not lists_work(engine, schema):
        raise ExactlyOnceError(
            f"no run has listed yet what is to be done: {schema}.dispatched_documents "
            "is not there, run `dbt build` first"
        )
    worker = worker_of(
        engine,
        schema,
        f"{place.project.landing_schema}.trigger_executions",
        hooks,
        service,
        concurrency=concurrency,
        poll_seconds=poll,
        echo=click.echo,
        between=_sender(place, (spark, schema), **broker).look if sends else lambda: None,
    )
    with finished_at_signals(worker, click.echo):
        click.echo(f"working for {', '.join(sorted(services))}")
        worker.run(once=once)
    click.echo(", ".join(f"{number} {event}" for event, number in worker.counts.items()))


@click.command()
@at_place
@error_broker_options("", "Send")
def send_errors(place: Place, **broker: str | None) -> None:
    """Send error documents to where their publishers want them.

    Sends each to its errors_to, at least once and always with the same message id.
    """
    if not broker_of("", broker):
        raise click.UsageError("name a broker with --rabbitmq or --amqp")
    sent = _sender(place, place.open_lake(), **broker).send_all()
    click.echo(f"{sent} error documents sent")
