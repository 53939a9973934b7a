"""The options of the command `exactly-once`, one function for each of its commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

Run = Callable[[argparse.Namespace], int]
Parser = argparse.ArgumentParser

# what landing can fill: the tables of the source that people write to
LANDING_TABLES = ("deliveries", "trigger_executions", "resubmissions", "trigger_commands")


def make_parser(commands: Mapping[str, Run]) -> Parser:
    """The parser of the command line; commands: what runs each, by name."""
    shown = Parser(add_help=False)
    shown.add_argument("--debug", action="store_true", help="show errors in full")
    place = Parser(add_help=False, parents=[shown])
    place.add_argument("--project-dir", help="the dbt project (default: here or above)")
    common = Parser(add_help=False, parents=[place])
    common.add_argument("--profiles-dir", help="where profiles.yml is (default: the project)")
    common.add_argument("--target", "-t", help="the target of profiles.yml")

    parser = Parser(
        prog="exactly-once", description="Exactly-once processing of at-least-once feeds."
    )
    added = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run in commands.items():
        help_text, add_options = COMMANDS[name]
        command = added.add_parser(
            name,
            parents=[{"init": shown, "demo": place}.get(name, common)],
            help=help_text,
            description=run.__doc__,
        )
        add_options(command)
        command.set_defaults(run=run)
    return parser


def _init(init: Parser) -> None:
    init.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="default: the current folder"
    )
    init.add_argument(
        "--print-package",
        action="store_true",
        help="print where the package is, for packages.yml, and do nothing else",
    )


def _land(land: Parser) -> None:
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


def _report(report: Parser) -> None:
    report.add_argument(
        "--output", metavar="FILE", default="exactly_once_report.html", help="default: %(default)s"
    )


def _worker(worker: Parser) -> None:
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


def _send_errors(send_errors: Parser) -> None:
    _add_error_brokers(send_errors, "", "send", required=True)


def _move_catalog(move: Parser) -> None:
    move.add_argument(
        "--to", required=True, metavar="TARGET", help="the target whose catalog takes them"
    )


def _thrift_server(server: Parser) -> None:
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


def _none(_: Parser) -> None:
    """For a command without options of its own."""


def _add_error_brokers(command: Parser, prefix: str, does: str, required: bool = False) -> None:
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


# a further command: its help and options here, what runs it in cli.COMMANDS
COMMANDS: dict[str, tuple[str, Callable[[Parser], None]]] = {
    "init": ("make a dbt project around this package", _init),
    "land": ("append files to a landed table", _land),
    "report": ("write a page that shows why", _report),
    "worker": ("call your services for the documents to be processed", _worker),
    "send-errors": ("send error documents to where their publishers want them", _send_errors),
    "move-catalog": ("list the lake's tables in another catalog", _move_catalog),
    "migrate": ("bring a lake that an earlier version has made to this one", _none),
    "thrift-server": ("serve the lake to dbt, or to readers, over Thrift", _thrift_server),
    "demo": ("decide a feed two ways", _none),
    "prepare": ("let Spark start quicker on this machine", _none),
}
