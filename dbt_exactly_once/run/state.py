"""What every command that writes works with: the tables, their lock, and what was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.run.lock import RunLock
from dbt_exactly_once.run.publication import Publications
from dbt_exactly_once.run.tables import Tables


@dataclass(frozen=True)
class State:
    """The state of a project in its lake, as dbt's graph describes it."""

    engine: Engine
    tables: Tables
    lock: RunLock
    publications: Publications

    @classmethod
    def of_graph(cls, engine: Engine, graph: Mapping[str, Any]) -> State:
        """The state that the graph of a dbt command describes; reads nothing from the lake."""
        tables = Tables(engine, graph)
        lock = RunLock(engine, tables)
        return cls(engine, tables, lock, Publications(engine, tables, lock))
