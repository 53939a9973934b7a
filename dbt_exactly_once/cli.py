"""The command `exactly-once`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dbt_exactly_once.errors import ExactlyOnceError, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from dbt_exactly_once.adapter.session import Project
    from dbt_exactly_once.landing.brokers import Broker
    from dbt_exactly_once.services.error_sender import ErrorSender

# what landing can fill: the tables of the source that people write to
LANDING_TABLES = ("deliveries", "trigger_executions", "resubmissions", "trigger_commands")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error that a person can mend is one line."""
    options = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("--project-dir", help="the dbt project (default: here or above)")
    place.add_argument("--debug", action="store_true", help="show errors in full")
    common = argparse.ArgumentParser(add_help=False, parents=[place])
    common.add_argument("--profiles-dir", help="where profiles.yml is (default: the project)")
    common.add_argument("--target", "-t", help="the target of profiles.yml")

    parser = argparse.ArgumentParser(
        prog="exactly-once", description="Exactly-once processing of at-least-once feeds."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    land = commands.add_parser(
        "land", parents=[common], help="append files to a landed table", description=_land.__doc__
    )
    land.add_argument("--table", choices=LANDING_TABLES, default=LANDING_TABLES[0])
    land.add_argument("files", nargs="*", metavar="FILE", help="JSON lines, CSV (or .gz), Parquet")
    brokers = land.add_mutually_exclusive_group()
    brokers.add_argument("--rabbitmq", metavar="URL", help="take from RabbitMQ, amqp://...")
    brokers.add_argument(
        "--amqp", metavar="URL", help="take from a JMS provider over AMQP 1.0, such as Artemis"
    )
    land.add_argument("--queue", help="the queue to take from")
    land.add_argument(
        "--batch",
        type=_count,
        default=1000,
        metavar="N",
        help="deliveries in one landing, at most (default: %(default)s)",
    )
    land.add_argument(
        "--every",
        type=float,
        default=5,
        metavar="SECONDS",
        help="how long a landing waits for deliveries (default: %(default)s)",
    )
    land.add_argument("--until-empty", action="store_true", help="end when the queue is empty")
    land.set_defaults(run=_land)

    report = commands.add_parser(
        "report", parents=[common], help="write a page that shows why", description=_report.__doc__
    )
    report.add_argument(
        "--output", metavar="FILE", default="exactly_once_report.html", help="default: %(default)s"
    )
    report.set_defaults(run=_report)

    worker = commands.add_parser(
        "worker",
        parents=[common],
        help="call your services for the documents to be processed",
        description=_worker.__doc__,
    )
    worker.add_argument(
        "--service",
        action="append",
        metavar="NAME",
        help="a service of python_udfs; repeat it for several (default: all)",
    )
    worker.add_argument(
        "--once", action="store_true", help="end when nothing is left to do or to try again"
    )
    worker.add_argument(
        "--concurrency",
        type=_count,
        default=1,
        metavar="N",
        help="how many documents at once (default: %(default)s)",
    )
    worker.add_argument(
        "--poll",
        type=float,
        default=5,
        metavar="SECONDS",
        help="how often to look for work where there is none (default: %(default)s)",
    )
    _add_error_brokers(worker, "send-errors-", "also send error documents")
    worker.set_defaults(run=_worker)

    send_errors = commands.add_parser(
        "send-errors",
        parents=[common],
        help="send error documents to where their publishers want them",
        description=_send_errors.__doc__,
    )
    _add_error_brokers(send_errors, "", "send", required=True)
    send_errors.set_defaults(run=_send_errors)

    move = commands.add_parser(
        "move-catalog",
        parents=[common],
        help="list the lake's tables in another catalog",
        description=_move_catalog.__doc__,
    )
    move.add_argument(
        "--to", required=True, metavar="TARGET", help="the target whose catalog takes them"
    )
    move.set_defaults(run=_move_catalog)

    migrate = commands.add_parser(
        "migrate",
        parents=[common],
        help="bring a lake that an earlier version has made to this one",
        description=_migrate.__doc__,
    )
    migrate.set_defaults(run=_migrate)

    server = commands.add_parser(
        "thrift-server",
        parents=[common],
        help="serve the lake to dbt, or to readers, over Thrift",
        description=_thrift_server.__doc__,
    )
    server.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    server.add_argument("--port", type=int, default=10000, help="default: %(default)s")
    server.add_argument(
        "--readers",
        action="store_true",
        help="a session for each connection: for BI tools and people, not for dbt",
    )
    server.add_argument(
        "--without-authentication",
        action="store_true",
        help="listen beyond this machine though nobody has to say who they are",
    )
    server.set_defaults(run=_thrift_server)

    demo = commands.add_parser(
        "demo", parents=[place], help="decide a feed two ways", description=_demo.__doc__
    )
    demo.set_defaults(run=_demo)

    prepare = commands.add_parser(
        "prepare",
        parents=[common],
        help="let Spark start quicker on this machine",
        description=_prepare.__doc__,
    )
    prepare.set_defaults(run=_prepare)

    # a further command: its parser here with set_defaults(run=...), its work in a module of its own
    return parser


def _add_error_brokers(
    command: argparse.ArgumentParser, prefix: str, does: str, required: bool = False
) -> None:
    """The options that say through which broker error documents go."""
    brokers = command.add_mutually_exclusive_group(required=required)
    brokers.add_argument(
        f"--{prefix}rabbitmq",
        dest="errors_rabbitmq",
        metavar="URL",
        help=f"{does} through RabbitMQ, errors_to is the routing key",
    )
    brokers.add_argument(
        f"--{prefix}amqp",
        dest="errors_amqp",
        metavar="URL",
        help=f"{does} over AMQP 1.0, errors_to is the address",
    )
    command.add_argument(
        f"--{prefix}exchange",
        dest="errors_exchange",
        default="",
        metavar="NAME",
        help="the exchange of RabbitMQ (default: the one whose routing keys are queues)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def _land(options: argparse.Namespace) -> int:
    """Append rows to a landed table, from files or a broker; what breaks the contract is kept."""
    from dbt_exactly_once.adapter.lake_version import check_lake
    from dbt_exactly_once.adapter.session import (
        find_project,
        open_session,
        quiet_start,
        read_credentials,
    )
    from dbt_exactly_once.landing.files import check_readable
    from dbt_exactly_once.landing.land import land

    broker = _chosen_broker(options)
    project = find_project(options.project_dir)
    # before Spark starts: a mistyped name is told at once
    for file in options.files:
        check_readable(file)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    check_lake(spark, credentials.schema)
    if broker is None:
        print(land(spark, project, options.files, options.table))
        return 0
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
    return chosen


def _land_from_broker(
    kind: type[Broker], options: argparse.Namespace, land_file: Callable[[Path], object]
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

    from dbt_exactly_once.adapter.lake_version import check_lake
    from dbt_exactly_once.adapter.session import (
        find_project,
        open_session,
        quiet_start,
        read_credentials,
    )
    from dbt_exactly_once.report.page import ask_spark, make_page

    output = Path(options.output)
    if not output.absolute().parent.is_dir():
        raise ExactlyOnceError(f"{output}: there is no folder {output.parent}")
    project = find_project(options.project_dir)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    check_lake(spark, credentials.schema)
    page = make_page(ask_spark(spark, credentials.schema), credentials.schema)
    output.write_text(page, encoding="utf-8")
    print(f"{output} is written ({len(page.encode()) // 1024} kB)")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    """Keep the classes of a run in an archive, where Java and the jars have none yet."""
    from dbt_exactly_once.adapter.prepare import prepare
    from dbt_exactly_once.adapter.session import find_project

    project = find_project(options.project_dir)
    print(prepare(project, options.profiles_dir, options.target))
    return 0


def _worker(options: argparse.Namespace) -> int:
    """Call the services of python_udfs for the documents that are to be processed."""
    from dbt_exactly_once.adapter.engine import SparkEngine
    from dbt_exactly_once.adapter.lake_version import check_lake
    from dbt_exactly_once.adapter.session import (
        find_project,
        open_session,
        quiet_start,
        read_credentials,
    )
    from dbt_exactly_once.resolvers.hooks import load_hooks
    from dbt_exactly_once.services.executions import Executions
    from dbt_exactly_once.services.worker import Worker, choose_services, stopped_by_signals

    def say(line: str) -> None:
        print(line, flush=True)

    project = find_project(options.project_dir)
    hooks = load_hooks(project.folder)
    registered = {name: hooks.get("service", name).function for name in hooks.names("service")}
    services = choose_services(registered, options.service)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    check_lake(spark, credentials.schema)
    engine = SparkEngine(spark)
    if not engine.rows(f"show views in {credentials.schema} like 'dispatched_documents'"):
        raise ExactlyOnceError(
            f"no run has said yet what is to be done: {credentials.schema}.dispatched_documents "
            "is not there, run `dbt build` first"
        )
    sends = options.errors_rabbitmq or options.errors_amqp
    sender = _error_sender(options, spark, credentials.schema, project, say) if sends else None
    worker = Worker(
        engine,
        credentials.schema,
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
    from dbt_exactly_once.adapter.lake_version import check_lake
    from dbt_exactly_once.adapter.session import (
        find_project,
        open_session,
        quiet_start,
        read_credentials,
    )

    project = find_project(options.project_dir)
    credentials = read_credentials(project, options.profiles_dir, options.target)
    with quiet_start(project):
        spark = open_session(credentials)
    check_lake(spark, credentials.schema)
    sent = _error_sender(options, spark, credentials.schema, project, print).send_all()
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
    from dbt_exactly_once.adapter.session import find_project
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
    from dbt_exactly_once.adapter.session import (
        find_project,
        open_session,
        parse_graph,
        quiet_start,
        read_credentials,
    )
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
    from dbt_exactly_once.adapter.session import find_project, read_credentials
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
    from dbt_exactly_once.adapter.session import find_project
    from dbt_exactly_once.demo import run_demo

    return run_demo(find_project(options.project_dir))


if __name__ == "__main__":
    sys.exit(main())
