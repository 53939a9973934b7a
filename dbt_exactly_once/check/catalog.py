"""Whether the catalog of a target answers, and whether a lake on this disk can be written."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbt_exactly_once.adapter.lake import SQLITE, catalog_settings, local_places
from dbt_exactly_once.check.findings import Finding, left, right, wrong
from dbt_exactly_once.errors import ExactlyOnceError

# the port of an address that names none
PORTS = {
    "http": 80,
    "https": 443,
    "thrift": 9083,
    "postgresql": 5432,
    "mysql": 3306,
    "mariadb": 3306,
    "sqlserver": 1433,
}
SECONDS = 2


def check_catalog(credentials: Any) -> Iterator[Finding]:
    """What can be found out about a target's catalog without opening it."""
    if credentials.method != "session":
        yield _answers("the server", f"thrift://{credentials.host}:{credentials.port}")
        return
    settings = credentials.server_side_parameters
    try:
        places = local_places(settings)
    except ExactlyOnceError as error:
        yield wrong(error.msg)
        return
    for setting, place in places.items():
        try:
            yield _writable(setting, place)
        except OSError as error:
            yield wrong(f"{setting}: {place} cannot be looked at: {error.strerror}")
    name, of_catalog = catalog_settings(settings)
    uri = str(of_catalog.get("uri") or settings.get("spark.hadoop.hive.metastore.uris") or "")
    if uri and not uri.startswith(SQLITE):
        # Hive may have several addresses, one of which has to answer
        found = [_answers(f"the catalog {name}", part.strip()) for part in uri.split(",")]
        yield next((finding for finding in found if finding.kind != "wrong"), found[0])
    elif not places:
        yield left(f"whether the catalog {name} answers, since no address of it is known")


def _answers(what: str, address: str) -> Finding:
    """Whether somebody listens at an address; nothing is sent there."""
    parts = urlsplit(address.removeprefix("jdbc:"))
    try:
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError:
        host, port = None, None
    if not host or not port:
        return left(f"whether {what} answers, since its address is of a kind not known here")
    where = f"{parts.scheme}://{host}:{port}"
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except OSError as error:
        cause = error.strerror or str(error)
        return wrong(f"{what} cannot be reached at {where}: {cause}")
    return right(f"{what} answers at {where}")


def _writable(setting: str, place: Path) -> Finding:
    """Whether a run can write or create a folder or a catalog's file."""
    # SQLite writes a journal beside its file
    folder = place.parent if setting.endswith(".uri") else place
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return wrong(f"{setting}: {folder} cannot be made, since {there} is a file")
    for path in (there, place):
        if path.exists() and not os.access(path, os.W_OK):
            return wrong(f"{setting}: {path} cannot be written")
    return right(f"{setting}: {place}{'' if place.exists() else ', which a run makes'}")
