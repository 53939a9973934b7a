"""The members of dbt that are replaced: as they were, for the reasons that are written down, and in
projects that have this package only."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx
import pytest
from dbt import compilation, selected_resources
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt.adapters.spark.impl import SparkAdapter
from dbt.adapters.spark.session import Connection, Cursor
from dbt.context.providers import RuntimeDatabaseWrapper
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import InjectedCTE
from dbt.flags import get_flags, set_from_args
from dbt.graph.queue import GraphQueue
from dbt.parser import read_files
from dbt.task import retry
from dbt_common.clients.jinja import MacroFuzzEnvironment, get_template
from dbt_common.exceptions import DbtRuntimeError

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.patches import PATCHES, Patch, apply_patches, take_patches_back
from dbt_exactly_once.plugin import ExactlyOncePlugin

PROJECT_FOLDER = Path(__file__).parents[2]
JAVA = "An error occurred while calling o1.sql.\n: java.lang.Error: no space\n\tat a.B.c(B.java:1)"


@pytest.fixture
def dbts_own(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """dbt's members, as a project that does not have this package gets them."""
    flags = get_flags()
    begin_command(tmp_path, "name: other\n")
    yield {patch.member: vars(patch.owner).get(patch.member) for patch in PATCHES}
    begin_command(PROJECT_FOLDER)
    set_from_args(Namespace(**vars(flags)), None)


def begin_command(folder: Path, project: str | None = None) -> None:
    """Let the plugin prepare a command of dbt in a project."""
    if project is not None:
        (folder / "dbt_project.yml").write_text(project)
    set_from_args(Namespace(PROJECT_DIR=str(folder)), None)
    ExactlyOncePlugin("of this name")


def is_replaced(patch: Patch) -> bool:
    return vars(patch.owner).get(patch.member) is patch.replacement


def test_a_project_without_this_package_gets_dbts_own_members(
    dbts_own: dict[str, Any], tmp_path: Path
) -> None:
    assert not [patch.member for patch in PATCHES if is_replaced(patch)]
    assert dbts_own["exactly_once"] is None
    assert "exactly_once" not in dbts_own["_available_"]

    (tmp_path / "elsewhere" / "exactly_once").mkdir(parents=True)
    begin_command(tmp_path, "name: other\npackages-install-path: elsewhere\n")
    assert all(is_replaced(patch) for patch in PATCHES)
    begin_command(tmp_path, "name: other\n")
    assert not any(is_replaced(patch) for patch in PATCHES)
    # what that stands for only dbt knows
    begin_command(tmp_path, "name: other\npackages-install-path: \"{{ env_var('X') }}\"\n")
    assert all(is_replaced(patch) for patch in PATCHES)
    begin_command(tmp_path, "name: other\n")
    begin_command(PROJECT_FOLDER)
    assert all(is_replaced(patch) for patch in PATCHES)


def test_a_member_that_is_replaced_is_called_as_it_was(dbts_own: dict[str, Any]) -> None:
    def parameters(function: Any) -> list[str]:
        return list(inspect.signature(function).parameters)

    assert isinstance(dbts_own["open"], classmethod)
    assert parameters(dbts_own["open"].__func__) == ["cls", "connection"]
    assert parameters(dbts_own["exception_handler"]) == ["self", "sql"]
    assert parameters(dbts_own["__init__"])[:4] == ["self", "graph", "manifest", "selected"]
    assert dbts_own["compile"] is None
    assert parameters(dbts_own["load_file_contents"]) == ["path", "strip"]
    assert parameters(MacroFuzzEnvironment.compile)[:2] == ["self", "source"]
    assert {"execute", "get_relation"} <= dbts_own["_available_"]


def test_dbt_still_sets_the_settings_of_the_profile_with_each_statement() -> None:
    """Why `open` is replaced; what it takes away from is the connection's."""
    assert Connection(server_side_parameters={"a": "b"}).cursor().server_side_parameters == {
        "a": "b"
    }
    assert "in self.server_side_parameters.items()" in inspect.getsource(Cursor.execute)


def test_dbt_still_tells_an_error_with_the_stack_of_java(dbts_own: dict[str, Any]) -> None:
    manager = object.__new__(SparkConnectionManager)
    with pytest.raises(DbtRuntimeError) as own, manager.exception_handler("select 1"):
        raise RuntimeError(JAVA)
    assert "B.java" in str(own.value)
    begin_command(PROJECT_FOLDER)
    with pytest.raises(DbtRuntimeError) as ours, manager.exception_handler("select 1"):
        raise RuntimeError(JAVA)
    assert "no space" in str(ours.value)
    assert "B.java" not in str(ours.value)


@pytest.mark.parametrize(
    "sql",
    [
        "with a as (select 1) select * from a",
        "\n-- with no CTE\n/* with\nb as */ WITH a as (select 1) select * from a",
        "with recursive a as (select 1) select * from a",
        "\n  select 'with' from without",
        "-- orders with their totals\n/* with */ select 1",
        # as long as a person draws it
        f"--{'-' * 98}\n" + "-- a line   \n" * 40 + "select 1",
    ],
)
def test_ephemeral_models_go_where_dbt_puts_them(dbts_own: dict[str, Any], sql: str) -> None:
    ctes = [InjectedCTE(f"cte_{name}", f" {name} as (\nselect 1)") for name in ("b", "c")]

    def injected(chosen: list[InjectedCTE]) -> str:
        return " ".join(compilation.inject_ctes_into_sql(sql, chosen).split())

    begin_command(PROJECT_FOLDER)
    ours = [injected(chosen) for chosen in ([], ctes[:1], ctes)]
    take_patches_back()
    assert ours == [injected(chosen) for chosen in ([], ctes[:1], ctes)]
    apply_patches()


def test_dbt_still_reads_a_whole_model_to_put_ephemeral_models_into_it(
    dbts_own: dict[str, Any],
) -> None:
    assert "sqlparse.parse(sql)" in inspect.getsource(dbts_own["inject_ctes_into_sql"])


def test_dbt_still_compiles_a_template_each_time(
    dbts_own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compile_source = MacroFuzzEnvironment._compile

    def listen(environment: Any, source: str, filename: str) -> Any:
        compiled.append(source)
        return compile_source(environment, source, filename)

    monkeypatch.setattr(MacroFuzzEnvironment, "_compile", listen)

    def rendered(**values: int) -> str:
        return str(get_template("{% do [] %}of this test: {{ number }}", {}).render(values))

    assert [rendered(number=1), rendered(number=2)] == ["of this test: 1", "of this test: 2"]
    assert len(compiled) == 2
    begin_command(PROJECT_FOLDER)
    assert [rendered(number=3), rendered(number=4)] == ["of this test: 3", "of this test: 4"]
    assert len(compiled) == 3


def test_dbt_still_names_no_file_that_is_not_utf8(dbts_own: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "köln.sql"
    file.write_text("\n select 'ü'\n", encoding="utf-8")
    own = dbts_own["load_file_contents"]
    begin_command(PROJECT_FOLDER)
    ours = read_files.load_file_contents
    assert own(str(file)) == ours(str(file)) == "select 'ü'"
    assert own(str(file), strip=False) == ours(str(file), strip=False)
    file.write_text("\n select 'ü'\n", encoding="latin-1")
    with pytest.raises(UnicodeDecodeError):
        own(str(file))
    with pytest.raises(ExactlyOnceError, match=r"köln\.sql is not UTF-8 at line 2"):
        ours(str(file))


def test_dbt_retry_still_does_not_say_what_is_selected(
    dbts_own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selected_resources, "SELECTED_RESOURCES", ["of the command before"])
    assert "selected_resources" not in inspect.getsource(retry)
    GraphQueue(networkx.DiGraph(), Manifest(), {"model.a"})
    assert selected_resources.SELECTED_RESOURCES == ["of the command before"]
    begin_command(PROJECT_FOLDER)
    GraphQueue(networkx.DiGraph(), Manifest(), {"model.a"})
    assert selected_resources.SELECTED_RESOURCES == ["model.a"]


def test_a_macro_still_gets_what_the_adapters_class_has_declared(
    dbts_own: dict[str, Any],
) -> None:
    adapter = object.__new__(SparkAdapter)
    adapter._exactly_once = "the door"
    wrapper = object.__new__(RuntimeDatabaseWrapper)
    wrapper._adapter = adapter
    with pytest.raises(AttributeError):
        wrapper.exactly_once  # noqa: B018
    begin_command(PROJECT_FOLDER)
    assert wrapper.exactly_once == "the door"
