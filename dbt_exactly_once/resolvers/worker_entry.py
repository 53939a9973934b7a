"""What Spark's workers run first: it finds the project's python_udfs and calls into it.

It is sent to the workers by value, since they have no dbt and need not import it. So this module
imports nothing but the standard library.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


def in_worker(
    version: str, function: str, modules: dict[str, str], *arguments: Any
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function of python_udfs._asking, of one version of python_udfs, for Spark to call.

    modules: the module of each of the user's functions that it may call; arguments: those between
    the first, the batches, and the last, a function that imports such a module.
    """

    def call(batches: Iterator[Any]) -> Iterator[Any]:
        asks = getattr(load(version), function)
        return asks(batches, *arguments, lambda name: importlib.import_module(modules[name]))

    return call


def load(version: str) -> Any:
    """The module _asking of that version; modules of another version are unloaded first."""
    package = sys.modules.get("python_udfs")
    archive = next((path for path in sys.path if path.endswith(f"python_udfs_{version}.zip")), None)
    if archive is not None and not str(getattr(package, "__file__", "")).startswith(archive):
        for name in [name for name in sys.modules if name.split(".")[0] == "python_udfs"]:
            del sys.modules[name]
        sys.path.remove(archive)
        sys.path.insert(0, archive)
    return importlib.import_module("python_udfs._asking")
