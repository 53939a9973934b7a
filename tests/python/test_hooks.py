"""A module dropped into python_udfs is enough; one that cannot be used is told in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from dbt_runs import LINKED, PROJECT_FOLDER
from thrift_servers import free_port

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.resolvers.hooks import OWN_FOLDER, load_hooks

SHIPPED = ["examples.jms_delivery_count", "examples.order_exists", "examples.orders_exist"]
CHECK = """
from python_udfs import Delivery, resolver

@resolver("{name}")
def check({arguments}):
    return "NEW"
"""


def put(folder: Path, module: str, text: str) -> None:
    path = folder / "python_udfs" / f"{module}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_module_in_the_folder_adds_its_resolver(tmp_path: Path) -> None:
    put(tmp_path, "orders", CHECK.format(name="orders.check", arguments="delivery: Delivery"))
    assert load_hooks(tmp_path).names("resolver") == [*SHIPPED, "orders.check"]


def test_a_project_does_not_see_the_modules_of_another(tmp_path: Path) -> None:
    put(tmp_path, "orders", CHECK.format(name="orders.check", arguments="delivery"))
    assert "orders.check" in load_hooks(tmp_path).names("resolver")
    assert load_hooks(OWN_FOLDER.parent).names("resolver") == SHIPPED


def test_a_function_of_a_library_is_asked_in_the_module_that_registers_it(tmp_path: Path) -> None:
    """The one that Spark's workers have to import."""
    put(
        tmp_path,
        "orders",
        "from functools import lru_cache\n"
        "from python_udfs import resolver\n"
        "from python_udfs._orders import check\n"
        "resolver('orders.check')(check)\n"
        "resolver('orders.cached')(lru_cache(check))\n",
    )
    put(tmp_path, "_orders", "def check(delivery):\n    return 'NEW'\n")
    modules = load_hooks(tmp_path).modules("resolver")
    assert modules["orders.check"] == modules["orders.cached"] == "python_udfs.orders"
    assert modules[SHIPPED[0]] == "python_udfs.examples.jms_delivery_count"


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
        ({"a": "import sys\nsys.exit(0)"}, "module python_udfs.a cannot be used: SystemExit: 0"),
        (
            {"a": "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd"},
            "module python_udfs.a cannot be used: Odd; correct it",
        ),
        (
            {
                "a": "from python_udfs import resource_monitor\n"
                "@resource_monitor('db')\ndef up(which): return True"
            },
            "resource_monitor db (python_udfs.a, line 2) must take no argument",
        ),
        (
            {"examples/order_exists": CHECK.format(name="a", arguments="delivery")},
            "order_exists.py is never loaded, since the package has another "
            "python_udfs/examples/order_exists.py: rename that of the project",
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


def test_a_folder_of_the_project_may_be_a_package(tmp_path: Path) -> None:
    put(tmp_path, "__init__", "")
    put(tmp_path, "orders", CHECK.format(name="orders.check", arguments="delivery: Delivery"))
    assert "orders.check" in load_hooks(tmp_path).names("resolver")


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


@pytest.mark.parametrize(
    ("count", "answer"), [(1, "NEW"), (2, "IN_DOUBT"), (0, "IN_DOUBT"), (None, "IN_DOUBT")]
)
def test_the_example_for_jms_goes_by_the_count(count: int | None, answer: str) -> None:
    check = load_hooks(PROJECT_FOLDER).get("resolver", "examples.jms_delivery_count")
    status, message = check.function(SimpleNamespace(redelivery_count=count, event_id="ID:7"))
    assert status == answer
    assert ("ID:7" in message) == (answer == "IN_DOUBT")


def test_commands_that_ask_no_table_start_no_java(
    profiles_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*LINKED, "seeds", "dbt_project.yml"):
        (tmp_path / name).symlink_to(PROJECT_FOLDER / name)
    shutil.copy(profiles_dir / "profiles.yml", tmp_path)
    started = tmp_path / "java-was-started"
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {started}\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("EXACTLY_ONCE_LAKE", str(tmp_path / "lake"))

    def dbt(*command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([Path(sys.executable).parent / "dbt", *command], cwd=tmp_path)

    assert dbt("parse").wait() == 0
    port = free_port()
    server = dbt("docs", "serve", "--no-browser", "--port", str(port))
    assert page_of(server, port)
    server.terminate()
    server.wait()
    for command in ("ls", "deps", "clean"):
        assert dbt(command).wait() == 0
    assert not started.exists()

    # this one does
    assert dbt("run", "--select", "stg_deliveries").wait() != 0
    assert started.exists()


def page_of(server: subprocess.Popen[bytes], port: int) -> bytes:
    """What a server shows that has just been started."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/") as answer:
                return answer.read()
        except URLError:
            time.sleep(0.1)
    return b""
