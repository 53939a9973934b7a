"""All that `exactly-once check` looks at: each check is a function that gives findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.macros import macro_result
from dbt_exactly_once.adapter.session import Project, folders_of
from dbt_exactly_once.check.catalog import check_catalog
from dbt_exactly_once.check.findings import Finding, Kind, left, right, wrong
from dbt_exactly_once.check.installed import check_iceberg, check_local_java, check_versions
from dbt_exactly_once.check.seeds import read_seeds
from dbt_exactly_once.check.spark_parser import spark_parser
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.resolvers.hooks import Hooks, load_hooks
from dbt_exactly_once.run.seed_check import Seed, SeedCheck
from dbt_exactly_once.run.seeds import registered_names

if TYPE_CHECKING:
    from dbt.adapters.spark.connections import SparkCredentials

# the columns of seeds that only Spark's parser can read
PARSED = ("filter", "key", "start_from")
SEEDS = ("triggers", "trigger_conditions", "transports")
SEES = "the columns that filters and keys name, and whether the lake has these seeds"


def check_project(
    project: Project, read_credentials: Callable[[], SparkCredentials]
) -> list[Finding]:
    """What would stop a run, and can be found without Spark."""
    java = check_local_java()
    hooks, loaded = _load_hooks(project)
    with ThreadPoolExecutor(1) as thread:
        # Java starts while dbt is imported
        seeds = thread.submit(_check_seeds, project, hooks, java.kind is Kind.RIGHT)
        target = _check_target(read_credentials, java)
        return [*check_versions(), *target, loaded, *seeds.result()]


def _load_hooks(project: Project) -> tuple[Hooks | None, Finding]:
    try:
        hooks = load_hooks(project.folder)
    except ExactlyOnceError as error:
        return None, wrong(error.msg)
    kinds = ("resolver", "resource_monitor", "service")
    counts = (_count(len(hooks.names(kind)), kind.replace("_", " ")) for kind in kinds)
    return hooks, right(f"python_udfs: {', '.join(counts)}")


def _check_target(read_credentials: Callable[[], SparkCredentials], java: Finding) -> list[Finding]:
    """The profile, and what its target needs: Java only if Spark runs here."""
    try:
        credentials = read_credentials()
    except ExactlyOnceError as error:
        return [java, wrong(error.msg)]
    method = right(f"profiles.yml: method {credentials.method}, schema {credentials.schema}")
    if credentials.method != "session":
        return [method, *check_catalog(credentials)]
    settings = credentials.server_side_parameters
    return [java, method, *check_iceberg(settings), *check_catalog(credentials)]


def _check_seeds(project: Project, hooks: Hooks | None, has_java: bool) -> list[Finding]:
    """The configuration seeds, with Spark's parser if Java can start."""
    try:
        words, defaults = (
            macro_result(project.package_folder, f"seeds/{name}", name)
            for name in ("seed_words", "trigger_defaults")
        )
        seeds = read_seeds(project, SEEDS)
    except Exception as error:
        return [wrong(one_line(error))]
    if hooks is None:
        return [left("the seeds, since python_udfs cannot be loaded")]
    asks = any(row.get(name) for seed in seeds.values() for row in seed.rows for name in PARSED)
    with spark_parser() if asks and has_java else nullcontext() as parser:
        check = SeedCheck(words, defaults, registered_names(hooks.names), parser)
        problems = check.problems(seeds)
    found = [wrong(problem) for problem in problems]
    if not found:
        counts = (_count(len(seed.rows), name) for name, seed in seeds.items())
        found = [right(f"seeds: {', '.join(counts)}")]
    if asks and not parser:
        found.append(left("filters, keys and times in the seeds, since there is no Java"))
    return [*found, *_services(project, hooks, seeds), left(SEES)]


def _services(project: Project, hooks: Hooks, seeds: Mapping[str, Seed]) -> Iterator[Finding]:
    """Services that seem to be neither functions nor models: other programs have to run them."""
    named = {row.get("service", "").strip(" ") for row in seeds["trigger_conditions"].rows} - {""}
    unknown = named - set(hooks.names("service"))
    if unknown:
        texts = "".join(
            f"{file.stem}\n{file.read_text(encoding='utf-8')}"
            for suffix in ("sql", "yml")
            for folder in folders_of(project.folder, "model")
            for file in sorted(folder.rglob(f"*.{suffix}"))
        )
        unknown = {name for name in unknown if name not in texts}
    if unknown:
        yield left(
            f"whether somebody works for {', '.join(sorted(unknown))}: no function of python_udfs "
            "and no model has the name"
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what.removesuffix('s')}{'' if number == 1 else 's'}"
