"""Models that would store rows that a run has not published.

A run reads the branch that it writes to, and so does every other model in its session. A view
stores no rows. But a table that is built in the middle of a run would keep rows of decisions that
are never published if the run then fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

KEEPS_NOTHING = ("view", "ephemeral")


def early_readers(
    nodes: Mapping[str, Mapping[str, Any]],
    unpublished: Collection[str],
    record: str,
    selected: Iterable[str],
) -> list[str]:
    """The models and snapshots that read a run's tables and are not downstream of its publication.

    nodes: those of dbt's graph; unpublished: ids of the tables that a run writes before it
    publishes; record: id of the model that publishes. Names are sorted.
    """

    def parents(node: str) -> list[str]:
        # a seed depends on macros only
        return [name for name in nodes[node]["depends_on"].get("nodes", ()) if name in nodes]

    def is_behind(node: str) -> bool:
        seen, left = set(), [node]
        while left:
            for parent in parents(left.pop()):
                if parent == record:
                    return True
                if parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        return False

    def reads(node: str) -> bool:
        """Directly, or through views and ephemeral models, which are read as the node is built."""
        return any(
            parent in unpublished
            or (nodes[parent]["config"].get("materialized") in KEEPS_NOTHING and reads(parent))
            for parent in parents(node)
        )

    return sorted(
        nodes[node]["name"]
        for node in selected
        if node in nodes
        and nodes[node]["resource_type"] in ("model", "snapshot")
        and nodes[node]["config"]["materialized"] not in KEEPS_NOTHING
        and node not in {*unpublished, record}
        and reads(node)
        and not is_behind(node)
    )
