"""Where a command works: the dbt project, and the target of its profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from dbt_exactly_once.adapter.lake_version import check_lake
from dbt_exactly_once.adapter.session import (
    Project,
    find_project,
    open_session,
    read_credentials,
    schema_of_ledgers,
)
from dbt_exactly_once.extras import require_extra

if TYPE_CHECKING:
    from dbt.adapters.spark.connections import SparkCredentials
    from pyspark.sql import SparkSession

Command = Callable[..., Any]
COUNT = click.IntRange(min=1)
# the options that name a broker, each with the options that name what is taken from it; each needs
# the extra of the same name
BROKERS = {"rabbitmq": ("queue",), "amqp": ("queue",), "kafka": ("topic", "group"), "sqs": ()}
# key in the context of Click: whether errors are shown in full
DEBUG = "exactly_once.debug"


@dataclass(frozen=True)
class Place:
    """The options that most commands have in common."""

    project_dir: str | None
    profiles_dir: str | None = None
    target: str | None = None

    @cached_property
    def project(self) -> Project:
        return find_project(self.project_dir)

    @cached_property
    def credentials(self) -> SparkCredentials:
        return read_credentials(self.project, self.profiles_dir, self.target)

    def open_session(self) -> SparkSession:
        """A session with the target's settings; the lake's version is not checked."""
        credentials = self.credentials
        return open_session(credentials, self.project.spark_log)

    def open_lake(self) -> tuple[SparkSession, str]:
        """A session in a lake of this package's version, and the schema of its ledgers."""
        schema = schema_of_ledgers(self.project, self.credentials, self.profiles_dir, self.target)
        spark = self.open_session()
        check_lake(spark, schema)
        return spark, schema


def _note_debug(ctx: click.Context, _: click.Parameter, is_shown: bool) -> None:
    ctx.meta[DEBUG] = is_shown


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_note_debug, help="Show errors in full."
)
# dbt reads the same environment variables
project_option = click.option(
    "--project-dir", envvar="DBT_PROJECT_DIR", help="The dbt project.  [default: here or above]"
)


def at_place(command: Command) -> Command:
    """Add the options of a Place; the command gets a Place as its first argument."""

    @debug_option
    @project_option
    @click.option("--profiles-dir", envvar="DBT_PROFILES_DIR", help="Where profiles.yml is.")
    @click.option("--target", "-t", envvar="DBT_TARGET", help="The target of profiles.yml.")
    @wraps(command)
    def run(project_dir: str, profiles_dir: str, target: str, **options: Any) -> Any:
        return command(Place(project_dir, profiles_dir, target), **options)

    return run


def broker_of(prefix: str, options: Mapping[str, Any]) -> str | None:
    """The broker that the options name; raises if its extra is not installed."""
    given = [name for name in BROKERS if options.get(name)]
    if len(given) > 1:
        raise click.UsageError(f"name one of --{prefix}{f', --{prefix}'.join(given)}")
    for name in given:
        require_extra(name)
    return next(iter(given), None)
