"""The Python side is built in layers: a folder imports those below it only, and no import is in a
circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "dbt_exactly_once"
# from the lowest up; what stands in no folder below a folder is a module of its own
LAYERS = (
    ("errors", "extras", "process"),
    ("adapter",),
    ("resolvers",),
    ("landing",),
    ("services",),
    ("run",),
    ("report",),
)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imports(path: Path, names: set[str]) -> set[str]:
    """The modules of the package that a module imports, wherever in it that stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            found |= inner or {node.module}
    return found & names


def layer(name: str) -> int:
    room = name.split(".")[1] if "." in name else ""
    return next((at for at, rooms in enumerate(LAYERS) if room in rooms), len(LAYERS))


def test_no_import_is_in_a_circle() -> None:
    found = dict(modules())
    graph = {name: imports(path, set(found)) for name, path in found.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert "dbt_exactly_once.run.door" in order


def test_a_folder_imports_those_below_it_only() -> None:
    found = dict(modules())
    assert {room for rooms in LAYERS for room in rooms} <= {name.split(".")[-1] for name in found}
    upwards = [
        f"{name} imports {other}"
        for name, path in found.items()
        for other in imports(path, set(found))
        if other != "dbt_exactly_once" and layer(other) > layer(name)
    ]
    assert upwards == []
