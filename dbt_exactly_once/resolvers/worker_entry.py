"""What Spark's workers run first: it finds the project's python_udfs and calls into it.

Sent to the workers by value, since they have no dbt and need not import it; so nothing but the
standard library is imported here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


def ask_in_worker(
    version: str, modules: dict[str, str], trace_folder: str
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function behind ask_resolver, for one version of python_udfs.

    modules: the module of each resolver.
    """

    def ask_resolver(batches: Iterator[Any]) -> Iterator[Any]:
        asking = load(version, "_asking")
        return asking.answer_chains(
            batches, trace_folder, lambda name: importlib.import_module(modules[name])
        )

    return ask_resolver


def monitor_in_worker(
    version: str, modules: dict[str, str]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function behind ask_resource_monitor, for one version of python_udfs."""

    def ask_resource_monitor(batches: Iterator[Any]) -> Iterator[Any]:
        asking = load(version, "_asking")
        return asking.availabilities(batches, lambda name: importlib.import_module(modules[name]))

    return ask_resource_monitor


def load(version: str, module: str) -> Any:
    """A module of that version of python_udfs; whatever this worker has loaded of another goes."""
    package = sys.modules.get("python_udfs")
    archive = next((path for path in sys.path if path.endswith(f"python_udfs_{version}.zip")), None)
    if archive is not None and not str(getattr(package, "__file__", "")).startswith(archive):
        for name in [name for name in sys.modules if name.split(".")[0] == "python_udfs"]:
            del sys.modules[name]
        sys.path.remove(archive)
        sys.path.insert(0, archive)
    return importlib.import_module(f"python_udfs.{module}")
