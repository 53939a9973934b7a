"""The command `exactly-once`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.lake_version import check_lake
from dbt_exactly_once.adapter.session import (
    PROJECT_FILE,
    Project,
    find_project,
    open_session,
    quiet_start,
    read_credentials,
    schema_of_ledgers,
)
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.options import make_parser

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from dbt_exactly_once.landing.brokers import Broker
    from dbt_exactly_once.landing.land import Landing
    from dbt_exactly_once.services.error_sender import ErrorSender


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error that a person can mend is one line."""
    options = make_parser(COMMANDS).parse_args(arguments)
    try:
        return options.run(options)
    except ExactlyOnceError as error:
        print(f"exactly-once: {error.msg.removeprefix('exactly_once: ')}", file=sys.stderr)
    except KeyboardInterrupt:
        print("exactly-once: stopped", file=sys.stderr)
    except Exception as error:
        # pages of the JVM help nobody; the whole is a switch away
        if options.debug:
            raise
        print(f"exactly-once: {one_line(error)} (--debug shows all of it)", file=sys.stderr)
    return 1


def _open_lake(options: argparse.Namespace, project: Project) -> tuple[SparkSession, str]:
    """A session in the lake that the options lead to, and the schema of its ledgers."""
    credentials = read_credentials(project, options.profiles_dir, options.target)
    schema = schema_of_ledgers(project, credentials, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    check_lake(spark, schema)
    return spark, schema


def _init(options: argparse.Namespace) -> int:
    """Make a dbt project around this package, or add it to the project that is there.

    Overwrites no file: it says what is new, what stays, and what is left to do by hand.
    """
    from pathlib import Path

    from dbt_exactly_once.starter import initialise, install_packages, package_folder

    if options.print_package:
        print(package_folder())
        return 0
    folder = Path(options.folder)
    joins = (folder / PROJECT_FILE).is_file()
    left = initialise(folder, print)
    if not joins:
        install_packages(folder)
    for line in left:
        print(f"by hand: {line}")
    steps = ["dbt deps"] if joins else []
    steps += ["exactly-once land FILE", "dbt build"]
    where = "" if options.folder == "." else f"cd {options.folder}; "
    print(f"next: {where}{'; '.join(steps)}")
    return 0


def _land(options: argparse.Namespace) -> int:
    """Append rows to a landed table, from files or a broker; what breaks the contract is kept.

    The exit status is 1 where files cannot be read, or rows were rejected and none has landed.
    """
    from dbt_exactly_once.landing.files import check_readable
    from dbt_exactly_once.landing.land import land
    from dbt_exactly_once.landing.landed_tables import read_landed_tables

    broker = _chosen_broker(options)
    project = find_project(options.project_dir)
    # before Spark starts: a mistyped name is told at once
    columns = read_landed_tables(project.package_folder)[options.table].types
    for file in options.files:
        check_readable(file, columns)
    spark, _ = _open_lake(options, project)
    if broker is None:
        landing = land(spark, project, options.files, options.table)
        print(*landing.lines(), sep="\n")
        return 1 if landing.failed else 0
    return _land_from_broker(
        broker, options, lambda file: land(spark, project, [file], options.table)
    )


def _chosen_broker(options: argparse.Namespace) -> type[Broker] | None:
    """The kind of broker that the options name; files are named instead of one."""
    from dbt_exactly_once.landing.amqp import Amqp
    from dbt_exactly_once.landing.rabbitmq import RabbitMq

    chosen = RabbitMq if options.rabbitmq else Amqp if options.amqp else None
    if chosen is None and not options.files:
        raise ExactlyOnceError("nothing to land: name files, or a broker with --rabbitmq or --amqp")
    if chosen is not None and (options.files or not options.queue or options.table != "deliveries"):
        raise ExactlyOnceError("from a broker deliveries land: name its --queue, and no files")
    _require_extras(options.rabbitmq, options.amqp)
    return chosen


def _require_extras(rabbitmq: str | None, amqp: str | None) -> None:
    """Stop before Spark starts where what talks to a broker is not installed."""
    from dbt_exactly_once.extras import require_extra

    for url, extra in ((rabbitmq, "rabbitmq"), (amqp, "amqp")):
        if url:
            require_extra(extra)


def _land_from_broker(
    kind: type[Broker], options: argparse.Namespace, land_file: Callable[[Path], Landing]
) -> int:
    from dbt_exactly_once.landing.brokers import land_from_broker
    from dbt_exactly_once.process import stopped_by_signals

    def say(line: str) -> None:
        print(line, flush=True)

    broker = kind(options.rabbitmq or options.amqp, options.queue, options.batch)
    with stopped_by_signals() as stop:
        say(f"taking from {options.queue}")
        taken = land_from_broker(
            broker,
            land_file,
            options.queue,
            say,
            stop,
            most=options.batch,
            seconds=options.every,
            until_empty=options.until_empty,
        )
    say(f"{taken} deliveries taken")
    return 0


def _report(options: argparse.Namespace) -> int:
    """Write one HTML page from the report views: what was decided, what is in doubt, what waits."""
    from pathlib import Path

    from dbt_exactly_once.extras import require_extra

    # before what draws with it is imported
    require_extra("report")
    from dbt_exactly_once.report.page import ask_spark, make_page

    output = Path(options.output)
    if not output.absolute().parent.is_dir():
        raise ExactlyOnceError(f"{output}: there is no folder {output.parent}")
    project = find_project(options.project_dir)
    spark, schema = _open_lake(options, project)
    page = make_page(ask_spark(spark, schema), schema)
    output.write_text(page, encoding="utf-8")
    print(f"{output} is written ({len(page.encode()) // 1024} kB)")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    """Keep the classes of a run in an archive, where Java and the jars have none yet."""
    from dbt_exactly_once.adapter.prepare import prepare

    project = find_project(options.project_dir)
    print(prepare(project, options.profiles_dir, options.target))
    return 0


def _worker(options: argparse.Namespace) -> int:
    """Call the services of python_udfs for the documents that are to be processed."""
    from dbt_exactly_once.adapter.engine import SparkEngine
    from dbt_exactly_once.resolvers.hooks import load_hooks
    from dbt_exactly_once.services.executions import Executions
    from dbt_exactly_once.services.worker import Worker, choose_services, stopped_by_signals

    def say(line: str) -> None:
        print(line, flush=True)

    _require_extras(options.errors_rabbitmq, options.errors_amqp)
    project = find_project(options.project_dir)
    hooks = load_hooks(project.folder)
    registered = {name: hooks.get("service", name).function for name in hooks.names("service")}
    services = choose_services(registered, options.service)
    spark, schema = _open_lake(options, project)
    engine = SparkEngine(spark)
    if not engine.rows(f"show views in {schema} like 'dispatched_documents'"):
        raise ExactlyOnceError(
            f"no run has said yet what is to be done: {schema}.dispatched_documents "
            "is not there, run `dbt build` first"
        )
    sends = options.errors_rabbitmq or options.errors_amqp
    sender = _error_sender(options, spark, schema, project, say) if sends else None
    worker = Worker(
        engine,
        schema,
        Executions(engine, f"{project.landing_schema}.trigger_executions"),
        services,
        hooks.package.Work,
        hooks.package.TransientError,
        concurrency=options.concurrency,
        poll_seconds=options.poll,
        say=say,
        between=sender.look if sender else lambda: None,
    )
    with stopped_by_signals(worker, say):
        say(f"working for {', '.join(sorted(services))}")
        worker.run(once=options.once)
    say(", ".join(f"{number} {event}" for event, number in worker.counts.items()))
    return 0


def _send_errors(options: argparse.Namespace) -> int:
    """Send each error document to its errors_to: at least once, always with the same message id."""

    _require_extras(options.errors_rabbitmq, options.errors_amqp)
    project = find_project(options.project_dir)
    spark, schema = _open_lake(options, project)
    sent = _error_sender(options, spark, schema, project, print).send_all()
    print(f"{sent} error documents sent")
    return 0


def _error_sender(
    options: argparse.Namespace,
    spark: SparkSession,
    schema: str,
    project: Project,
    say: Callable[[str], None],
) -> ErrorSender:
    """What sends error documents through the broker that the options name."""
    from dbt_exactly_once.landing.amqp import AmqpPublisher
    from dbt_exactly_once.landing.brokers import Publisher
    from dbt_exactly_once.landing.rabbitmq import RabbitMqPublisher
    from dbt_exactly_once.services.error_sender import ErrorSender

    def open_publisher() -> Publisher:
        if options.errors_amqp:
            return AmqpPublisher(options.errors_amqp)
        return RabbitMqPublisher(options.errors_rabbitmq, options.errors_exchange)

    return ErrorSender(spark, schema, f"{project.landing_schema}.sent_errors", open_publisher, say)


def _move_catalog(options: argparse.Namespace) -> int:
    """Move the tables of a target's catalog to another catalog; their files stay where they are."""
    from dbt_exactly_once.run.move_catalog import move_catalog

    project = find_project(options.project_dir)
    moved = move_catalog(project, options.profiles_dir, options.target, options.to)
    print(f"{len(moved)} tables moved: {', '.join(moved)}")
    print(f"now `dbt build --target {options.to}`, which makes the views there")
    return 0


def _migrate(options: argparse.Namespace) -> int:
    """Add to the lake's tables what this version of the package needs, and note the version."""
    from uuid import uuid4

    from dbt_exactly_once.adapter.engine import SparkEngine
    from dbt_exactly_once.adapter.session import parse_graph
    from dbt_exactly_once.run.operations import migrate
    from dbt_exactly_once.run.state import State

    project = find_project(options.project_dir)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    graph = parse_graph(project, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    state = State.of_graph(SparkEngine(spark), graph)
    run_timeout = float(project.variables["run_timeout"])
    for line in migrate(state, str(uuid4()), run_timeout):
        print(line)
    return 0


def _thrift_server(options: argparse.Namespace) -> int:
    """Serve the lake of a session target over Thrift, to one dbt project or to readers."""
    from dbt_exactly_once.thrift_server import serve

    project = find_project(options.project_dir)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    serve(
        project,
        credentials,
        options.host,
        options.port,
        readers=options.readers,
        open_to_all=options.without_authentication,
    )
    return 0


def _demo(options: argparse.Namespace) -> int:
    """Land the demo feed in a lake of its own, decide it, and show what two triggers make of it."""
    from dbt_exactly_once.demo import run_demo

    return run_demo(find_project(options.project_dir))


COMMANDS = {
    "init": _init,
    "land": _land,
    "report": _report,
    "worker": _worker,
    "send-errors": _send_errors,
    "move-catalog": _move_catalog,
    "migrate": _migrate,
    "thrift-server": _thrift_server,
    "demo": _demo,
    "prepare": _prepare,
}


if __name__ == "__main__":
    sys.exit(main())
