"""The command `exactly-once`; its commands are in the folder commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from dbt_exactly_once.commands import check, lake, land, report, run, services, start
from dbt_exactly_once.commands.place import DEBUG
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.extras import DISTRIBUTION

NAME = "exactly-once"
COMMANDS = (
    start.init,
    check.check,
    land.land,
    run.run,
    report.report,
    report.alert,
    report.metrics,
    services.worker,
    services.send_errors,
    lake.move_catalog,
    lake.migrate,
    lake.thrift_server,
    lake.prepare,
)


class Group(click.Group):
    """Runs one command; an error that a person can fix is one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of COMMANDS, in which people come to need them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except ExactlyOnceError as error:
            line = error.msg.removeprefix("exactly_once: ")
        except KeyboardInterrupt:
            line = "stopped"
        except Exception as error:
            # a stack of the JVM fills pages and helps nobody; --debug shows it
            if ctx.meta.get(DEBUG):
                raise
            line = f"{one_line(error)} (--debug shows all of it)"
        click.echo(f"{NAME}: {line}", err=True)
        return 1


@click.group(
    cls=Group,
    commands={command.name: command for command in COMMANDS},
    context_settings={
        "auto_envvar_prefix": "EXACTLY_ONCE",
        "help_option_names": ["-h", "--help"],
        "show_default": True,
    },
)
@click.version_option(
    package_name=DISTRIBUTION, message=f"{NAME} %(version)s", allow_from_autoenv=False
)
def exactly_once() -> None:
    """Exactly-once processing of at-least-once feeds.

    Each option has an environment variable: EXACTLY_ONCE_WORKER_POLL is --poll of worker.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    try:
        return exactly_once.main(arguments, NAME, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
