"""The seeds of a run: checked at its start, unchanged until it publishes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.adapter.session import PACKAGE
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.filters import expression_problem
from dbt_exactly_once.run.in_memory import keep_snapshot
from dbt_exactly_once.run.seed_check import Expressions, Seed, SeedCheck
from dbt_exactly_once.run.seed_rules import REGISTERED
from dbt_exactly_once.run.state import State


def freeze_seeds(state: State, run: Run, graph: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Note the snapshot of each seed that this package reads; returns them as in dbt's graph."""
    seeds = seeds_of_csv(state, graph)
    for relation, (_, snapshot) in seeds.items():
        run.seeds[relation] = snapshot
        keep_snapshot(state.engine, run, relation, snapshot)
    return [seed for seed, _ in seeds.values()]


def seeds_of_csv(
    state: State, graph: Mapping[str, Any]
) -> dict[str, tuple[Mapping[str, Any], str]]:
    """The seeds that this package reads by relation: as in dbt's graph, and the snapshot.

    They are loaded outside of the transaction, so a seed that differs from its CSV is refused.
    """
    seeds = (graph["nodes"][name] for name in sorted(seeds_read(graph)))
    return {
        (relation := _relation(seed)): (seed, _snapshot_of_csv(state.engine, relation, seed))
        for seed in seeds
    }


def source_of_settings(
    state: State, run: Run, code: str, registered: Mapping[str, list[str]]
) -> str:
    """A checksum of all that the rows of trigger_settings and their check depend on.

    code: a checksum of the project's code; registered: see SeedCheck.
    """
    source = [
        code,
        registered,
        run.seeds,
        run.starts["trigger_states"],
        # filters and keys read them
        state.engine.columns(state.tables.landed["deliveries"].relation),
    ]
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()


def check_seeds(
    state: State,
    in_memory: Mapping[str, str],
    frozen: Sequence[Mapping[str, Any]],
    words: Mapping[str, Sequence[str]],
    defaults: Mapping[str, tuple[str, str | None]],
    registered: Mapping[str, list[str]],
    previewed: Mapping[str, Mapping[str, Any]],
) -> None:
    """Stop a run before anything is decided, with a line for each wrong value.

    in_memory: what is read in place of a seed; frozen: as freeze_seeds returns them. For words,
    defaults, registered see SeedCheck; for previewed its of_preview. Raises ExactlyOnceError.
    """
    seeds = _as_loaded(state.engine, in_memory, frozen)
    deliveries = state.tables.landed["deliveries"]
    spark = _Spark(state.engine, f"(select {deliveries.column_list} from {deliveries.relation})")
    check = SeedCheck(words, defaults, registered, spark)
    problems = check.problems(seeds)
    if not problems:
        problems = check.of_preview(previewed, seeds["triggers"])
    if problems:
        raise ExactlyOnceError("\n".join(f"exactly_once: {problem}" for problem in problems))


def registered_names(names: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """The functions of python_udfs by the settings that name one; names: gives those of a kind."""
    return {setting: names(setting) for setting in REGISTERED}


class _Spark(Expressions):
    """Asks the session of a run, which knows the columns of deliveries."""

    def __init__(self, engine: Engine, deliveries: str) -> None:
        self._engine = engine
        self._deliveries = deliveries

    def problem(self, text: str, is_filter: bool) -> str | None:
        return expression_problem(self._engine, text, self._deliveries, is_filter)

    def is_time(self, text: str) -> bool:
        # Spark reads "yesterday" as a time in a literal, but not in a column
        ((is_time,),) = self._engine.rows(
            "select try_cast(written as timestamp) is not null "
            f"from values ({literal(text)}) as cell (written)"
        )
        return bool(is_time)


def seeds_read(graph: Mapping[str, Any]) -> set[str]:
    """The ids of the seeds that this package reads; another project may replace them by its own."""
    return {
        name
        for node in graph["nodes"].values()
        if node["package_name"] == PACKAGE and node["resource_type"] in ("model", "test")
        for name in node["depends_on"]["nodes"]
        if name.startswith("seed.")
    }


def _relation(seed: Mapping[str, Any]) -> str:
    return f"{seed['schema']}.{seed['alias']}"


def _as_loaded(
    engine: Engine, in_memory: Mapping[str, str], seeds: Sequence[Mapping[str, Any]]
) -> dict[str, Seed]:
    """Seeds as the lake has them."""
    queries = []
    for seed in seeds:
        cells = "to_json(struct(*), map('ignoreNullFields', 'false'))"
        read = in_memory.get(_relation(seed), _relation(seed))
        queries.append(f"select {literal(seed['name'])}, {cells} from {read}")
    rows: dict[str, list[dict[str, str]]] = {seed["name"]: [] for seed in seeds}
    for name, cells in engine.rows("\nunion all\n".join(queries)):
        rows[name].append({key: text or "" for key, text in json.loads(cells).items()})
    files = {seed["name"]: seed["original_file_path"] for seed in seeds}
    return {
        name: Seed(name, files[name], [*found[0]] if found else [], found)
        for name, found in rows.items()
    }


def _snapshot_of_csv(engine: Engine, relation: str, seed: Mapping[str, Any]) -> str:
    """The snapshot of a seed's table; refuses one that was not loaded from the CSV as it is now."""
    loaded = engine.properties(relation) or {}
    if loaded and "csv-checksum" not in loaded:
        raise ExactlyOnceError(
            f"exactly_once: seed {seed['name']} was loaded by dbt and not by this package: run "
            "`dbt seed --full-refresh`"
        )
    if loaded.get("csv-checksum") != seed["checksum"]["checksum"]:
        raise ExactlyOnceError(
            f"exactly_once: seed {seed['name']} in the lake is not the version of "
            f"{seed['original_file_path']}: run `dbt seed`"
        )
    return loaded["current-snapshot-id"]


def check_seeds_stayed(state: State, run: Run) -> None:
    """Refuse to go on if another command has loaded a seed since this run read it.

    Parts of a run read the seeds at different times, so some would follow the old version and some
    the new one.
    """
    refs = state.engine.refs(list(run.seeds))
    changed = sorted(name for name, read in run.seeds.items() if refs[name].get("main") != read)
    if changed:
        raise ExactlyOnceError(
            f"exactly_once: {', '.join(changed)} was loaded by `dbt seed` while this run was "
            "at work: nothing is published, since parts of it read the earlier version; start "
            "it again"
        )
