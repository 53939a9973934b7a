"""Runs dbt commands in this process, one after the other, with a project that was parsed once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import CompiledNode

from dbt_exactly_once.errors import ExactlyOnceError, one_line

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult

# what the macros of this package put before a line for people
PREFIX = "exactly_once: "
# dbt's names of the events of such lines; a service that is a model reports failures as warnings
FOR_PEOPLE = ("JinjaLogInfo", "JinjaLogWarning")
# nothing on the screen; logs/dbt.log has each node, and the whole text of an error. No artifacts:
# to write the manifest takes a twentieth of a small run.
SILENT = ("--quiet", "--log-level", "none", "--log-level-file", "info", "--no-write-json")
TESTS = ("test", "unit_test")


@dataclass
class Outcome:
    """The outcome of a dbt command."""

    result: dbtRunnerResult
    # the run's lines for people, and dbt's errors
    messages: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def has_built(self) -> bool:
        """Whether all models were built, even if their tests have failed."""
        results = getattr(self.result.result, "results", None) or []
        of_models = [
            str(item.status)
            for item in results
            if getattr(getattr(item, "node", None), "resource_type", None) not in TESTS
        ]
        return bool(of_models) and not {"error", "skipped"} & set(of_models)

    @property
    def failures(self) -> list[str]:
        """What has failed, a line each; none if the command has succeeded."""
        if self.result.success:
            return []
        found = [f"{name}: {_in_a_line(message)}" for name, message in failed_nodes(self.result)]
        if self.result.exception:
            found.insert(0, _in_a_line(str(self.result.exception)))
        return found or [_in_a_line(error) for error in self.errors] or ["dbt.log has the cause"]


def dbt(arguments: Sequence[str], manifest: Manifest | None = None) -> Outcome:
    """Run a dbt command in this process; manifest: the project, if it is parsed already."""
    messages: list[str] = []
    errors: list[str] = []

    def hear(event: Any) -> None:
        if event.info.level == "error":
            errors.append(event.info.msg)
        elif event.info.name in FOR_PEOPLE and event.info.msg.startswith(PREFIX):
            messages.append(event.info.msg.removeprefix(PREFIX))

    if manifest is not None:
        forget_compiled(manifest)
    result = dbtRunner(manifest=manifest, callbacks=[hear]).invoke([*arguments])
    return Outcome(result, messages, errors)


def parse(place: Sequence[str]) -> Manifest:
    """The project as dbt parses it; place: the options that name its folders."""
    parsed = dbt(["parse", *SILENT, *place])
    if not parsed.result.success:
        raise ExactlyOnceError(f"the project cannot be parsed: {parsed.failures[0]}")
    manifest = parsed.result.result
    assert isinstance(manifest, Manifest)
    # what macros see as `graph`
    manifest.build_flat_graph()
    return manifest


def forget_compiled(manifest: Manifest) -> None:
    """Let a command compile again what an earlier one with the same manifest has compiled.

    Otherwise dbt would reuse the SQL of ephemeral models, which differs from run to run.
    """
    for node in manifest.nodes.values():
        if isinstance(node, CompiledNode):
            node.compiled, node.extra_ctes_injected, node.extra_ctes = False, False, []


def failed_nodes(result: dbtRunnerResult) -> list[tuple[str, str]]:
    """The nodes that have failed, with their messages."""
    return [
        # an operation's result has no node
        (item.node.name if hasattr(item, "node") else item.unique_id, str(item.message))
        for item in getattr(result.result, "results", None) or []
        if str(item.status) in ("error", "fail")
    ]


def _in_a_line(message: str) -> str:
    """A message of dbt in one line, without the part that says where it was raised."""
    kept = re.sub(r"(\w+ Error)( in .*)?\n", "", message)
    return one_line(Exception(kept.replace(PREFIX, "")))
