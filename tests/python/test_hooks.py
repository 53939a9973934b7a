"""A module dropped into python_udfs is enough; one that cannot be used is told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt_exactly_once.engine import ExactlyOnceError
from dbt_exactly_once.hooks import OWN_FOLDER, load_hooks

SHIPPED = ["examples.jms_delivery_count", "examples.order_exists", "examples.orders_exist"]
CHECK = """
from python_udfs import Delivery, resolver

@resolver("{name}")
def check({arguments}):
    return "NEW"
"""


def put(folder: Path, module: str, text: str) -> None:
    path = folder / "python_udfs" / f"{module}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_module_in_the_folder_adds_its_resolver(tmp_path: Path) -> None:
    put(tmp_path, "orders", CHECK.format(name="orders.check", arguments="delivery: Delivery"))
    assert load_hooks(tmp_path).names("resolver") == [*SHIPPED, "orders.check"]


def test_a_project_does_not_see_the_modules_of_another(tmp_path: Path) -> None:
    put(tmp_path, "orders", CHECK.format(name="orders.check", arguments="delivery"))
    assert "orders.check" in load_hooks(tmp_path).names("resolver")
    assert load_hooks(OWN_FOLDER.parent).names("resolver") == SHIPPED


def test_a_changed_module_is_another_version(tmp_path: Path) -> None:
    put(tmp_path, "orders", CHECK.format(name="a", arguments="delivery"))
    first = load_hooks(tmp_path)
    put(tmp_path, "orders", CHECK.format(name="b", arguments="delivery"))
    second = load_hooks(tmp_path)
    assert first.version != second.version
    assert "b" in second.names("resolver")
    assert "a" not in second.names("resolver")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            {"broken": "import no_such_library"},
            "module python_udfs.broken cannot be used: ModuleNotFoundError: No module named "
            "'no_such_library'; correct it or move it out of python_udfs/",
        ),
        (
            {"broken": "def ("},
            "module python_udfs.broken cannot be used: SyntaxError",
        ),
        (
            {name: CHECK.format(name="orders.check", arguments="delivery") for name in ("a", "b")},
            "module python_udfs.b cannot be used: resolver orders.check is registered twice, by "
            "python_udfs.a and by python_udfs.b: give one of them another name",
        ),
        (
            {"a": CHECK.format(name="orders.check", arguments="uuid, count")},
            "resolver orders.check (python_udfs.a, line 4) must take exactly one argument, the "
            "delivery; it takes 2",
        ),
        (
            {"a": CHECK.format(name="orders.check", arguments="")},
            "must take exactly one argument, the delivery; it takes 0",
        ),
        (
            {"a": CHECK.format(name="orders check", arguments="delivery")},
            "resolver 'orders check' cannot be named so: use letters, digits, _ . and -",
        ),
        (
            {"a": CHECK.format(name="a", arguments="delivery").replace("def", "async def")},
            "must be a plain function that returns its answer",
        ),
        (
            {
                "a": "from python_udfs import resource_monitor\n"
                "@resource_monitor('db')\ndef up(which): return True"
            },
            "resource_monitor db (python_udfs.a, line 2) must take no argument",
        ),
    ],
)
def test_a_module_that_cannot_be_used_is_told_in_one_line(
    texts: dict[str, str], said: str, tmp_path: Path
) -> None:
    for module, text in texts.items():
        put(tmp_path, module, text)
    with pytest.raises(ExactlyOnceError) as error:
        load_hooks(tmp_path)
    message = str(error.value)
    assert said in message
    assert "\n" not in message.strip().removeprefix("Runtime Error\n").strip()


def test_the_workers_package_imports_neither_dbt_nor_spark() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, python_udfs, python_udfs._asking, python_udfs.examples.orders_exist\n"
            "print([m for m in ('dbt', 'pyspark', 'pandas', 'pyarrow') if m in sys.modules])",
        ],
        cwd=OWN_FOLDER.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
