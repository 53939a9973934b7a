"""Where the lake is: what must exist on this machine before Spark opens its catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_exactly_once.errors import ExactlyOnceError

SQLITE = "jdbc:sqlite:"
TYPE_SETTING = re.compile(r"spark\.sql\.catalog\.\w+\.type")
# those that Iceberg makes; another one is named by its class, as catalog-impl
CATALOG_TYPES = ("bigquery", "glue", "hadoop", "hive", "jdbc", "nessie", "rest")
# a REST catalog gives its warehouses names
NAMES_WAREHOUSES = "rest"
CATALOG_SETTING = re.compile(r"(spark\.sql\.catalog\.\w+)\.(uri|warehouse)")


def local_places(settings: Mapping[str, Any]) -> dict[str, Path]:
    """By setting what of a lake is on the local disk: the file of its catalog, the folder of files.

    Raises ExactlyOnceError where a catalog is of no type that Iceberg knows, or its file is lost.
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
        places[name] = Path(value.removeprefix(SQLITE)).expanduser().absolute()
    by_kind = {name.rpartition(".")[2]: place for name, place in places.items()}
    _refuse_lost_catalog(by_kind.get("uri"), by_kind.get("warehouse"))
    return places


def ensure_place(server_side_parameters: dict[str, str]) -> None:
    """Make the folders of a lake on the local disk; leave a lake elsewhere alone.

    SQLite does not make the folder of its file. A relative place, as `--profiles-dir .` gives, is
    made absolute in the parameters, since Iceberg writes down where its files are.
    """
    for name, place in local_places(server_side_parameters).items():
        is_catalog_file = name.endswith(".uri")
        server_side_parameters[name] = f"{SQLITE if is_catalog_file else ''}{place}"
        (place.parent if is_catalog_file else place).mkdir(parents=True, exist_ok=True)


def _refuse_lost_catalog(catalog: Path | None, warehouse: Path | None) -> None:
    """A lake whose catalog is gone looks like an empty one, and all would be decided again."""
    if catalog is None or warehouse is None or catalog.exists():
        return
    kept = next(warehouse.glob("*/*/metadata/*.metadata.json"), None)
    if kept is not None:
        raise ExactlyOnceError(
            f"exactly_once: the catalog {catalog} is missing while {warehouse} has tables: restore "
            "it from a copy; to start with an empty lake, move that folder away"
        )
