"""The user's functions in python_udfs: found, loaded, and given to Spark.

They are loaded here to learn their names and to report what is wrong with a module before a run
starts. Spark's workers get the same files as an archive named after its content, and load from it
only the module they need.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import importlib.util
import pkgutil
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dbt_exactly_once.errors import ExactlyOnceError, error_text
from dbt_exactly_once.resolvers import worker_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "python_udfs"
OWN_FOLDER = Path(__file__).parents[2] / PACKAGE
ASK = "ask_resolver"
MONITOR = "ask_resource_monitor"
ANSWERS = "array<struct<delivery_id: string, resolver_result: string, message: string>>"
AVAILABILITY = "struct<is_available: boolean, message: string>"


@dataclass(frozen=True)
class Hooks:
    """The functions of a project, as they were when they were loaded."""

    folders: tuple[Path, ...]
    version: str
    package: ModuleType

    @property
    def content(self) -> str:
        """A digest of the files, the same for a copy of them on another machine."""
        return _digest(self.folders, lambda name, _: name)

    def names(self, kind: str) -> list[str]:
        """The names registered under a kind: resolver, resource_monitor, service."""
        return self.package._hooks.registry.names(kind)

    def get(self, kind: str, name: str) -> Any:
        """A registered function; raises KeyError if there is none."""
        return self.package._hooks.registry.get(kind, name)

    def modules(self, kind: str) -> dict[str, str]:
        """The module of this folder that registers each function of a kind, by name.

        It need not define the function: a function of a library can be registered too.
        """
        registered_by = self.package.registered_by
        return {name: registered_by[kind, name] for name in self.names(kind)}


def load_hooks(project_dir: str | Path) -> Hooks:
    """Load every module of the project's folder python_udfs, and the package's own.

    Raises ExactlyOnceError, in one line, if a module cannot be imported or is hidden by one of
    the package, a name is registered twice, or a function cannot be called as it must be.
    """
    folders = tuple(dict.fromkeys([OWN_FOLDER, Path(project_dir).absolute() / PACKAGE]))
    folders = tuple(folder for folder in folders if folder.is_dir())
    version = _digest(folders, lambda name, path: f"{name}\0{path}")
    loaded = sys.modules.get(PACKAGE)
    if getattr(loaded, "version", None) == version:
        return Hooks(folders, version, loaded)
    with _all_or_nothing():
        package = _import_package(folders)
        package.registered_by = {}
        for module in sorted(_modules(package)):
            try:
                importlib.import_module(module)
            except (Exception, SystemExit) as error:
                cause = " ".join(error_text(error).split()).removeprefix("RegistrationError: ")
                raise ExactlyOnceError(
                    f"exactly_once: module {module} cannot be used: {cause}; correct it or move it "
                    f"out of {PACKAGE}/"
                ) from error
            for hook in package._hooks.registry.hooks():
                package.registered_by.setdefault(hook, module)
        package.version = version
    return Hooks(folders, version, package)


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    """Forget what another project has loaded, and what was loaded before an error."""
    _forget()
    try:
        yield
    except BaseException:
        _forget()
        raise


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def _import_package(folders: tuple[Path, ...]) -> ModuleType:
    """The package; its modules are looked up in all folders."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE,
        OWN_FOLDER / "__init__.py",
        submodule_search_locations=[str(folder) for folder in folders],
    )
    package = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)  # type: ignore[union-attr]
    return package


def _modules(package: ModuleType) -> Iterator[str]:
    """The names of the user's modules: all but those that start with an underscore."""
    for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def _files(folders: tuple[Path, ...]) -> dict[str, Path]:
    """The files of the package by their path within it.

    If two folders have a file, that of the first is used; a different module in the second raises.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            name = str(path.relative_to(folder))
            rules = found.setdefault(name, path)
            # an __init__.py of the project is never loaded
            is_module = path.suffix == ".py" and path.name != "__init__.py"
            if is_module and rules != path and rules.read_bytes() != path.read_bytes():
                raise ExactlyOnceError(
                    f"exactly_once: {path} is never loaded, since the package has another "
                    f"{PACKAGE}/{name}: rename that of the project"
                )
    return found


def _digest(folders: tuple[Path, ...], identify: Callable[[str, Path], str]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(_files(folders).items()):
        digest.update(f"{identify(name, path)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# ---- Spark


def register_hooks(hooks: Hooks, spark: SparkSession) -> None:
    """Register ask_resolver and ask_resource_monitor in a session that does not have them yet.

    `ask_resolver(resolver, trigger_name, limit_ms, chain)` answers an array of candidates, see
    python_udfs._asking; `ask_resource_monitor(name)` returns whether a resource is available. They
    are declared non-deterministic, so that Spark neither repeats a call nor moves it.
    """
    from pyspark import cloudpickle
    from pyspark.sql.functions import ArrowUDFType, arrow_udf

    if getattr(spark, "_exactly_once_hooks", None) == hooks.version:
        return
    spark.sparkContext.addPyFile(str(_archive(hooks)))
    cloudpickle.register_pickle_by_value(worker_entry)
    version, in_worker = hooks.version, worker_entry.in_worker
    resolvers, monitors = hooks.modules("resolver"), hooks.modules("resource_monitor")
    asks = in_worker(version, "answer_chains", resolvers, str(trace_folder()))
    looks = in_worker(version, "availabilities", monitors)
    for name, function, result in ((ASK, asks, ANSWERS), (MONITOR, looks, AVAILABILITY)):
        with warnings.catch_warnings():
            # it warns that type hints are missing; with them the workers' part would import Arrow
            warnings.simplefilter("ignore", UserWarning)
            in_sql = arrow_udf(function, result, ArrowUDFType.SCALAR_ITER)
        spark.udf.register(name, in_sql.asNondeterministic())
    spark._exactly_once_hooks = hooks.version


def _archive(hooks: Hooks) -> Path:
    """The package as a zip file, which workers import from."""
    path = _own_folder() / f"{PACKAGE}_{hooks.version}.zip"
    if not path.exists():
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, file in _files(hooks.folders).items():
                archive.write(file, f"{PACKAGE}/{name}")
    return path


@cache
def _own_folder() -> Path:
    """A folder of this process, removed when it exits."""
    folder = Path(tempfile.mkdtemp(prefix="exactly_once_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def trace_folder() -> Path:
    """Where workers on this host write down what they ask, see python_udfs._asking.Trace."""
    folder = _own_folder() / "asked"
    folder.mkdir(exist_ok=True)
    return folder


def being_asked() -> list[tuple[str, str, list[str]]]:
    """Trigger, resolver, delivery ids of calls that no worker has ended; removes their traces."""
    found = []
    for path in sorted(trace_folder().iterdir()):
        text = path.read_bytes().split(b"\0")[0].decode(errors="replace")
        if text:
            trigger_name, resolver, *delivery_ids = text.split("\n")
            found.append((trigger_name, resolver, delivery_ids))
        path.unlink()
    return found
