"""The version of a lake's table layout, so that no command uses a lake of another version.

The table `published_runs` carries the version as a property. A lake whose `published_runs` has no
such property was made by 0.1.0 and is of version 1. migration.py brings it to this version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.errors import ExactlyOnceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE_VERSION = 5
VERSION_PROPERTY = "exactly-once.lake-version"
RECORD = "published_runs"
# suffix of a table's name in the catalog that it was moved away from
MOVED = "__moved"


def version_of(engine: Engine, record: str) -> int | None:
    """The version of the lake with that `published_runs`; None if there is no such table.

    Raises ExactlyOnceError if the lake is of a later version than this package.
    """
    properties = engine.properties(record)
    if properties is None:
        return None
    version = int(properties.get(VERSION_PROPERTY, 1))
    if version > LAKE_VERSION:
        raise ExactlyOnceError(
            f"exactly_once: the lake of {record} is of version {version}, this package knows "
            f"version {LAKE_VERSION}: upgrade the package"
        )
    return version


def check_version(engine: Engine, record: str) -> None:
    """Refuse a lake of another version than this package's, and one that has moved away."""
    version = version_of(engine, record)
    if version is None and engine.properties(record + MOVED) is not None:
        raise moved_away(record.rpartition(".")[0])
    if version is not None and version < LAKE_VERSION:
        raise ExactlyOnceError(
            f"exactly_once: the lake of {record} is of version {version}, this package needs "
            f"version {LAKE_VERSION}: run `exactly-once migrate`"
        )


def check_lake(spark: SparkSession, schema: str) -> None:
    """Refuse a lake of another version, for commands outside of dbt. An empty lake has none."""
    record = f"{schema}.{RECORD}"
    if spark.catalog.tableExists(record + MOVED):
        raise moved_away(schema)
    if spark.catalog.tableExists(record):
        check_version(Engine(run_in(spark)), record)


def moved_away(schema: str) -> ExactlyOnceError:
    """The error for a command that uses the catalog that a lake was moved away from."""
    return ExactlyOnceError(
        f"exactly_once: the tables of {schema} have moved to another catalog: use the target that "
        "leads to it"
    )


def check_columns(relation: str, lacking: Iterable[str]) -> None:
    """Refuse a table that lacks columns, if there is no `published_runs` to carry the version."""
    names = ", ".join(lacking)
    if names:
        raise ExactlyOnceError(
            f"exactly_once: {relation} lacks the column {names}, since an earlier version has made "
            "it: run `exactly-once migrate`"
        )


def lacking_columns(
    engine: Engine, relation: str, columns: Iterable[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    """The columns (name, type, description) that a table does not have."""
    present = engine.columns(relation)
    return [column for column in columns if column[0] not in present]
