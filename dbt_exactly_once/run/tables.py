"""The tables of the project: what dbt's graph says about them, and which exist in the lake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.lake_version import LAKE_VERSION, RECORD
from dbt_exactly_once.adapter.session import PACKAGE
from dbt_exactly_once.adapter.tables import Table, columns_of
from dbt_exactly_once.landing.landed_tables import SOURCE_NAME, LandedTable


class Tables:
    """Ledgers, landed tables and scratch tables, by the names of their models and sources."""

    def __init__(self, engine: Engine, graph: Mapping[str, Any]) -> None:
        # those of this package: another may use the same tags, and have a source of the same name
        nodes = [
            node
            for node in graph["nodes"].values()
            if node["resource_type"] == "model" and node["package_name"] == PACKAGE
        ]
        of_transaction = [
            node
            for node in nodes
            if "transaction" in node["tags"] and node["config"]["materialized"] != "ephemeral"
        ]
        self._engine = engine
        self.ledgers = {node["name"]: _ledger(node) for node in nodes if is_ledger(node)}
        self.landed = {
            node["name"]: LandedTable.of_source(node)
            for node in graph["sources"].values()
            if node["source_name"] == SOURCE_NAME and node["package_name"] == PACKAGE
        }
        # the ids of the models that make up a run
        self.transaction = frozenset(node["unique_id"] for node in of_transaction)
        scratch = [
            node
            for node in of_transaction
            if node["config"]["materialized"] != "view" and not is_ledger(node)
        ]
        self._scratch = [Table(node["alias"], node["schema"]) for node in scratch]
        # what each run writes exactly once; resolver_answers is written in rounds, or not at all
        self.recreated = [
            Table(node["alias"], node["schema"])
            for node in scratch
            if node["config"]["materialized"] == "scratch"
        ]

    @property
    def record(self) -> Table:
        """The ledger published_runs."""
        return self.ledgers[RECORD]

    @property
    def schema(self) -> str:
        """The schema of the ledgers."""
        return self.record.schema

    def existing(self, schema: str) -> set[str]:
        """The names of the tables in a schema."""
        return {str(row[1]) for row in self._engine.rows(f"show tables in {schema}")}

    def existing_in(self, schemas: Iterable[str]) -> set[str]:
        """The tables in some schemas, as schema.name; none for a schema that does not exist."""
        wanted = set(schemas)
        if wanted:
            wanted &= {str(row[0]) for row in self._engine.rows("show namespaces")}
        return {f"{schema}.{name}" for schema in wanted for name in self.existing(schema)}

    def existing_tables(self) -> list[Table]:
        """The ledgers and the landed tables that exist."""
        tables = [*self.ledgers.values(), *self.landed.values()]
        existing = self.existing_in(table.schema for table in tables)
        return [table for table in tables if table.relation in existing]

    def existing_scratch(self) -> list[Table]:
        """The tables that each run recreates, those of them that exist."""
        existing = self.existing(self.schema)
        return [table for table in self._scratch if table.name in existing]

    def refs(self, tables: Mapping[str, Table]) -> dict[str, dict[str, str]]:
        """Branches and tags of each table."""
        found = self._engine.refs([table.relation for table in tables.values()])
        return {name: found[table.relation] for name, table in tables.items()}

    def full_name(self, table: Table) -> str:
        """A table's name with its catalog, as Iceberg's procedures want it."""
        return f"{self._engine.catalog()}.{table.relation}"


def is_ledger(node: Mapping[str, Any]) -> bool:
    """Whether a model is one of the ledgers: they are the incremental models of the transaction."""
    return node["config"]["materialized"] == "incremental" and "transaction" in node["tags"]


def _ledger(node: Mapping[str, Any]) -> Table:
    config = node["config"]
    return Table(
        node["alias"],
        node["schema"],
        columns_of(node),
        config.get("partitioned_by") or "",
        config.get("sorted_by") or "",
        wap=True,
        version=LAKE_VERSION if node["name"] == RECORD else None,
    )
