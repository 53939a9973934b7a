"""Where the lake is: what must exist on this machine before Spark opens its catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_exactly_once.errors import ExactlyOnceError

SQLITE = "jdbc:sqlite:"
TYPE_SETTING = re.compile(r"spark\.sql\.catalog\.\w+\.type")
# the types that Iceberg knows; any other catalog is named by its class, in catalog-impl
CATALOG_TYPES = ("bigquery", "glue", "hadoop", "hive", "jdbc", "nessie", "rest")
# the warehouse of a REST catalog is a name, not a path
NAMES_WAREHOUSES = "rest"
CATALOG_SETTING = re.compile(r"(spark\.sql\.catalog\.\w+)\.(uri|warehouse)")


def local_places(settings: Mapping[str, Any]) -> dict[str, Path]:
    """The paths of a lake on the local disk, by setting: a catalog's file, a warehouse's folder.

    Raises ExactlyOnceError if a catalog is of no type that Iceberg knows, or its file is lost.
    """
    places: dict[str, Path] = {}
    for name, value in settings.items():
        if TYPE_SETTING.fullmatch(name) and str(value).lower() not in CATALOG_TYPES:
            raise ExactlyOnceError(
                f"exactly_once: profiles.yml: {name} is {value}, Iceberg knows "
                f"{', '.join(CATALOG_TYPES)}"
            )
        setting = CATALOG_SETTING.fullmatch(name)
        if setting is None:
            continue
        catalog, kind = setting.groups()
        if kind == "uri" and not value.startswith(SQLITE):
            continue
        is_name = str(settings.get(f"{catalog}.type")).lower() == NAMES_WAREHOUSES
        if kind == "warehouse" and (is_name or re.match(r"[a-z0-9]+:", value)):
            continue
        # SQLite's options may follow the file of a catalog
        file = value.removeprefix(SQLITE).partition("?")[0] if kind == "uri" else value
        places[name] = Path(file).expanduser().absolute()
    for name, place in places.items():
        warehouse = places.get(f"{name.removesuffix('.uri')}.warehouse")
        if name.endswith(".uri") and warehouse is not None:
            _refuse_lost_catalog(place, warehouse)
    return places


def catalog_settings(parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Name and settings of the catalog that a target's tables are in."""
    name = parameters.get("spark.sql.defaultCatalog", "spark_catalog")
    prefix = f"spark.sql.catalog.{name}."
    found = {
        key.removeprefix(prefix): value
        for key, value in parameters.items()
        if key.startswith(prefix)
    }
    return name, found


def ensure_place(server_side_parameters: dict[str, str]) -> None:
    """Make the folders of a lake on the local disk; leave a lake elsewhere alone.

    SQLite does not make the folder of its file. A relative path, as `--profiles-dir .` gives, is
    made absolute in the parameters, since Iceberg stores the paths of its files.
    """
    for name, place in local_places(server_side_parameters).items():
        if name.endswith(".uri"):
            _, mark, options = server_side_parameters[name].partition("?")
            server_side_parameters[name] = f"{SQLITE}{place}{mark}{options}"
            place.parent.mkdir(parents=True, exist_ok=True)
        else:
            server_side_parameters[name] = str(place)
            place.mkdir(parents=True, exist_ok=True)


def _refuse_lost_catalog(catalog: Path, warehouse: Path) -> None:
    """Refuse a lake whose catalog is gone: it looks empty, and all would be decided again."""
    try:
        if catalog.exists():
            return
        kept = next(warehouse.glob("*/*/metadata/*.metadata.json"), None)
    except OSError as error:
        raise ExactlyOnceError(
            f"exactly_once: nobody can tell whether the catalog {catalog} is there "
            f"({error.strerror}): correct its path, or let this user read its folder"
        ) from error
    if kept is not None:
        raise ExactlyOnceError(
            f"exactly_once: the catalog {catalog} is missing while {warehouse} has tables: restore "
            "it from a copy; to start with an empty lake, move that folder away"
        )
