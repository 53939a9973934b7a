"""The Spark session that the dbt profile describes, for commands that run outside of dbt."""

from __future__ import annotations

import os
import subprocess
import threading
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dbt_exactly_once.adapter.engine import SESSION_SETTINGS
from dbt_exactly_once.adapter.lake import ensure_place
from dbt_exactly_once.adapter.startup import (
    PACKAGES,
    check_java,
    find_spark,
    quickened,
    remember_jars,
)
from dbt_exactly_once.errors import ExactlyOnceError, keep_errors_out_of_logs, one_line

if TYPE_CHECKING:
    from dbt.adapters.spark.connections import SparkCredentials
    from pyspark.sql import SparkSession

PROJECT_FILE = "dbt_project.yml"
# the name of this dbt project, also as the package of another one
PACKAGE = "exactly_once"

# for each thread: the session whose class loader it uses already, see share_compiled_code
_sharing = threading.local()
# names that PySpark and this package ask Java for, see find_names_once
OFTEN_ASKED = ("PythonUtils", "java", "org")


@dataclass(frozen=True)
class Project:
    """The dbt project as a command outside of dbt sees it."""

    folder: Path
    variables: dict[str, Any]
    # where the files of exactly_once are: the same folder, or dbt's copy of the package in it
    package_folder: Path

    @property
    def spark_log(self) -> Path:
        """The log file of Spark, if a command starts it."""
        return self.folder / "logs" / "spark.log"

    @property
    def landing_schema(self) -> str:
        return str(self.variables["landing_schema"])

    def seed_file(self, name: str) -> Path:
        """The CSV of a seed: the project's own if it has one, else the package's."""
        folders = [*folders_of(self.folder, "seed"), *folders_of(self.package_folder, "seed")]
        found = (file for folder in folders for file in sorted(folder.rglob(f"{name}.csv")))
        file = next(found, None)
        if file is None:
            raise ExactlyOnceError(f"there is no {name}.csv in {folders[0]}")
        return file


def find_project(project_dir: str | Path | None = None) -> Project:
    """The project in `project_dir`, else in the current folder or the nearest one above it."""
    start = Path(project_dir or Path.cwd()).absolute()
    candidates = [start] if project_dir else [start, *start.parents]
    folder = next((path for path in candidates if (path / PROJECT_FILE).is_file()), None)
    if folder is None:
        raise ExactlyOnceError(
            f"no {PROJECT_FILE} in {start}{'' if project_dir else ' or above it'}: "
            "go to the project's folder or name it with --project-dir"
        )
    content = read_yaml(folder / PROJECT_FILE)
    if content.get("name") == PACKAGE:
        return Project(folder, _variables(content), folder)
    package = folder / content.get("packages-install-path", "dbt_packages") / PACKAGE
    if not (package / PROJECT_FILE).is_file():
        raise ExactlyOnceError(
            f"{folder} does not have the package {PACKAGE}: name it in packages.yml and run "
            "`dbt deps`"
        )
    defaults = _variables(read_yaml(package / PROJECT_FILE))
    return Project(folder, {**defaults, **_variables(content)}, package)


def has_package(project_dir: str | Path) -> bool:
    """Whether the project in a folder is this one, or has it as a package; True if unclear."""
    folder = Path(project_dir)
    content = read_yaml(folder / PROJECT_FILE)
    packages = str(content.get("packages-install-path", "dbt_packages"))
    # only dbt can render the Jinja in it
    is_unknown = "{{" in packages
    has_files = (folder / packages / PACKAGE).is_dir()
    return content.get("name") == PACKAGE or is_unknown or has_files


def _variables(content: dict[str, Any]) -> dict[str, Any]:
    """What a dbt_project.yml sets for this package: for all packages, or under its name."""
    written = content.get("vars") or {}
    return {**written, **(written.get(PACKAGE) or {})}


def folders_of(project_folder: Path, kind: str) -> list[Path]:
    """The folders of a project's seeds or models; kind: seed or model."""
    named = read_yaml(project_folder / PROJECT_FILE).get(f"{kind}-paths", [f"{kind}s"])
    return [project_folder / name for name in named]


def read_yaml(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty if the file is."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        # the error reports the position in the file on lines of its own
        cause = " ".join(str(error).split())
        raise ExactlyOnceError(f"{file} cannot be read, correct it: {cause}") from error
    if not isinstance(content, dict):
        raise ExactlyOnceError(f"{file} is no mapping, as lines like `name: shop` are: correct it")
    return content


def profiles_folder(project: Project, profiles_dir: str | Path | None = None) -> Path:
    """The folder of profiles.yml: as named, or beside the project, or where dbt keeps it."""
    folder = profiles_dir or os.environ.get("DBT_PROFILES_DIR")
    if folder is None:
        beside = project.folder / "profiles.yml"
        folder = project.folder if beside.is_file() else Path.home() / ".dbt"
    return Path(folder).absolute()


def read_credentials(
    project: Project, profiles_dir: str | Path | None = None, target: str | None = None
) -> SparkCredentials:
    """The target of profiles.yml, rendered by dbt itself."""
    from dbt.config.runtime import load_profile
    from dbt.flags import set_from_args
    from dbt_common.context import set_invocation_context
    from dbt_common.exceptions import DbtBaseException

    folder = profiles_folder(project, profiles_dir)
    args = Namespace(PROFILES_DIR=str(folder), PROJECT_DIR=str(project.folder))
    try:
        # env_var in profiles.yml reads the environment from this context
        set_invocation_context(os.environ)
        set_from_args(args, None)
        # dbt treats an empty variable as one that is not set
        named = os.environ.get("DBT_PROFILE") or None
        credentials = load_profile(str(project.folder), {}, named, target).credentials
    except DbtBaseException as error:
        raise ExactlyOnceError(_profile_problem(folder / "profiles.yml", error)) from error
    if credentials.type != "spark":
        raise ExactlyOnceError(
            f"{folder / 'profiles.yml'}: a target of type spark is needed, "
            f"this one is {credentials.type}; name another one with --target"
        )
    return credentials


def _profile_problem(file: Path, error: BaseException) -> str:
    if not file.is_file():
        return (
            f"there is no {file}, which says how Spark starts and where the lake is: copy "
            "profiles.example.yml there, or name its folder with --profiles-dir"
        )
    line = " ".join(str(error).split()).removeprefix("Runtime Error ")
    if line.startswith("Could not find profile named"):
        named = ", ".join(name for name in read_yaml(file) if name != "config")
        asks = "DBT_PROFILE" if os.environ.get("DBT_PROFILE") else PROJECT_FILE
        line += f", which {asks} asks for; it has {named or 'none'}"
    return f"{file}: {line}"


def parse_graph(
    project: Project, profiles_dir: str | Path | None = None, target: str | None = None
) -> dict[str, Any]:
    """The project as dbt has parsed it, in the form that macros know as `graph`."""
    from dbt_exactly_once.adapter.dbt_commands import parse

    return parse(options_of(project, profiles_dir, target)).flat_graph


def options_of(
    project: Project, profiles_dir: str | Path | None = None, target: str | None = None
) -> list[str]:
    """The options by which dbt finds a project, its profile and a target of it."""
    # without these options dbt would look in the current folder
    place = [
        f"--project-dir={project.folder}",
        f"--profiles-dir={profiles_folder(project, profiles_dir)}",
    ]
    return [*place, f"--target={target}"] if target else place


def schema_of_ledgers(
    project: Project,
    credentials: SparkCredentials,
    profiles_dir: str | Path | None = None,
    target: str | None = None,
) -> str:
    """The schema of ledgers and views; a project with this one as its package may choose another.

    Only dbt can tell which, and to parse the project takes some seconds.
    """
    if project.folder == project.package_folder:
        return credentials.schema
    graph = parse_graph(project, profiles_dir, target)
    return graph["nodes"][f"model.{PACKAGE}.published_runs"]["schema"]


def open_session(credentials: SparkCredentials, log: Path | None = None) -> SparkSession:
    """The session that dbt would open for a target with `method: session`, made the same way, with
    SESSION_SETTINGS in place of the target's values.

    log: the file, in place of the screen, for the output of a Spark that this call starts.
    """
    if credentials.method != "session":
        raise ExactlyOnceError(
            f"this target of profiles.yml has method {credentials.method}, the command needs one "
            "with method session: name it with --target"
        )
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    keep_errors_out_of_logs()
    ensure_place(credentials.server_side_parameters)
    parameters = credentials.server_side_parameters
    starts = SparkContext._active_spark_context is None
    if starts:
        check_java()
        find_spark()
        parameters = quickened(parameters)
    # `hive` is what the adapter sets; a profile may override it
    settings = {"spark.sql.catalogImplementation": "hive", **parameters, **SESSION_SETTINGS}
    if starts and log is not None:
        _start_quietly(settings, log)
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    find_names_once(spark)
    share_compiled_code(spark)
    if starts:
        remember_jars(spark, parameters.get(PACKAGES))
    return spark


def _start_quietly(settings: dict[str, Any], log: Path) -> None:
    """Start Spark with a Java that writes to a file as long as it lives, not to the screen."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAll(list(settings.items()))
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("w", encoding="utf-8") as file:
            # a Java that this process has started before is used again
            gateway = SparkContext._gateway or launch_gateway(
                conf, {"stdout": file, "stderr": subprocess.STDOUT}
            )
        SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        cause = one_line(error)
        raise ExactlyOnceError(f"Spark did not start, {log} has all of it: {cause}") from error


def find_names_once(spark: SparkSession) -> None:
    """Keep what Java has found for names without a package.

    Py4J asks Java for such a name each time, and Java looks for it in every jar, once for each of a
    dozen packages. PySpark uses one with each statement.
    """
    for name in OFTEN_ASKED:
        if name not in vars(spark._jvm):
            setattr(spark._jvm, name, getattr(spark._jvm, name))


def share_compiled_code(spark: SparkSession) -> None:
    """Let this thread's statements and Spark's tasks share the code that Spark compiles.

    Spark 4 compiles a query's code once for each class loader. If tasks run in the driver's own
    process, their loader is a child of the statements' loader, and finds all the same classes.
    """
    if getattr(_sharing, "spark", None) is spark:
        return
    jvm = spark._jvm
    loader_of_tasks = jvm.org.apache.spark.SparkEnv.get().serializer().defaultClassLoader()
    if loader_of_tasks.isDefined():
        # PySpark gives each Python thread a Java thread of its own
        jvm.java.lang.Thread.currentThread().setContextClassLoader(loader_of_tasks.get())
    _sharing.spark = spark
