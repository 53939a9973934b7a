"""Moves a lake to another catalog: its tables are registered there, its files stay in place.

A table is renamed in the old catalog first. From then on nobody can commit to it there, not even
who has opened it before, so the state that is then registered in the new catalog is the last one.
An interrupted move is finished by starting it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.adapter.lake import catalog_settings
from dbt_exactly_once.adapter.lake_version import MOVED, RECORD
from dbt_exactly_once.adapter.session import (
    Project,
    open_session,
    parse_graph,
    read_credentials,
)
from dbt_exactly_once.adapter.shared_session import LOCK
from dbt_exactly_once.adapter.startup import PACKAGES
from dbt_exactly_once.errors import ExactlyOnceError, text_of
from dbt_exactly_once.run.lock import GRAVE
from dbt_exactly_once.run.operations import Operations
from dbt_exactly_once.run.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK_NAMES = (LOCK, GRAVE)


def move_catalog(
    project: Project, profiles_dir: str | None, source: str | None, destination: str
) -> list[str]:
    """Move all tables of a target's catalog to that of another; returns their names."""
    old = read_credentials(project, profiles_dir, source)
    new = read_credentials(project, profiles_dir, destination)
    for credentials in (old, new):
        if credentials.method != "session":
            raise ExactlyOnceError(
                "a catalog is moved from one target with method session to another; name them "
                "with --target and --to"
            )
    name, settings = catalog_settings(old.server_side_parameters)
    new_name, new_settings = catalog_settings(new.server_side_parameters)
    if name != new_name:
        raise ExactlyOnceError(
            f"catalog {name} is called {new_name} in target {destination}: keep its name"
        )
    if settings.get("uri") == new_settings.get("uri"):
        raise ExactlyOnceError(
            f"both targets lead to {settings.get('uri')}: name the other one with --to"
        )
    # one session opens both catalogs
    packages = [
        part.strip()
        for credentials in (old, new)
        for part in credentials.server_side_parameters.get(PACKAGES, "").split(",")
    ]
    old.server_side_parameters[PACKAGES] = ",".join(dict.fromkeys(filter(None, packages)))
    graph = parse_graph(project, profiles_dir, source)
    spark = open_session(old, project.spark_log)
    state = State.of_graph(Engine(run_in(spark)), graph)
    with Operations(state, f"move-{uuid4()}", project.variables).moving():
        catalogs = (_open(spark, name, of_catalog) for of_catalog in (settings, new_settings))
        return sorted(move_tables(*catalogs, spark))


def move_tables(old: Any, new: Any, spark: SparkSession) -> Iterator[str]:
    """Rename each table in the old catalog, register it in the new one; `published_runs` first."""
    identifier = spark._jvm.org.apache.iceberg.catalog.TableIdentifier
    found = [
        (namespace, str(table.name()))
        for namespace in list(old.listNamespaces())
        for table in list(old.listTables(namespace))
        if not table.name().startswith(LOCK_NAMES)
    ]
    names = {(str(namespace), table) for namespace, table in found}
    plain = [pair for pair in found if not pair[1].endswith(MOVED)]
    for namespace, table in plain:
        if (str(namespace), table + MOVED) in names:
            raise ExactlyOnceError(
                f"{namespace}.{table} has moved already, and somebody has made another one in the "
                "old catalog since: land its rows in the new one and drop it"
            )
        if new.tableExists(identifier.of(namespace, table)):
            raise ExactlyOnceError(
                f"{namespace}.{table} exists in the new catalog: move to one without these tables"
            )
    for namespace, table in found:
        here, there = (
            identifier.of(namespace, name) for name in (table, table.removesuffix(MOVED) + MOVED)
        )
        if new.tableExists(there) and _last_change(new, there) > _last_change(old, here):
            raise ExactlyOnceError(
                f"{namespace}.{table}: a move from the new catalog to this one was cut off, and "
                "what it has renamed there is newer: finish that move first"
            )
    for namespace, table in sorted(plain, key=_record_first):
        old.renameTable(identifier.of(namespace, table), identifier.of(namespace, table + MOVED))
    for namespace in {str(namespace): namespace for namespace, _ in found}.values():
        if not new.namespaceExists(namespace):
            new.createNamespace(namespace)
    for namespace, table in sorted(found, key=_record_first):
        name = table.removesuffix(MOVED)
        here = identifier.of(namespace, name)
        moved = _metadata(old, identifier.of(namespace, name + MOVED))
        if not new.tableExists(here):
            new.registerTable(here, moved.metadataFileLocation())
            yield f"{namespace}.{name}"
        elif _metadata(new, here).uuid() != moved.uuid():
            raise ExactlyOnceError(
                f"{namespace}.{name} in the new catalog is another table, made since the move was "
                "cut off: land its rows again once it is dropped, and start the move again"
            )
        # if the lake moves back, its earlier move has left this name here
        left = identifier.of(namespace, name + MOVED)
        if new.tableExists(left):
            new.dropTable(left, False)


def _metadata(catalog: Any, table: Any) -> Any:
    return catalog.loadTable(table).operations().current()


def _last_change(catalog: Any, table: Any) -> int:
    """When a table was changed last, in milliseconds; 0 if its metadata is deleted already."""
    try:
        return int(_metadata(catalog, table).lastUpdatedMillis())
    except Exception as error:
        if "NotFoundException" not in text_of(error):
            raise
        return 0


def _record_first(table: tuple[Any, str]) -> bool:
    """Sorts published_runs before the others, so that no run mistakes the lake for a new one."""
    return table[1].removesuffix(MOVED) != RECORD


def _open(spark: SparkSession, name: str, settings: Mapping[str, str]) -> Any:
    """A catalog, as Iceberg opens it for Spark."""
    jvm = spark._jvm
    options = jvm.java.util.HashMap()
    for key, value in settings.items():
        options.put(key, value)
    return jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(
        name, options, spark._jsc.hadoopConfiguration()
    )
