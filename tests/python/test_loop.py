"""A loop that stays warm decides what lands, whatever changes meanwhile and whenever it ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from dbt_runs import PROJECT_FOLDER, TARGET, DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.sources import Sources
from dbt_exactly_once.loop.loop import Loop
from dbt_exactly_once.loop.round import Round, pause_after
from dbt_exactly_once.run.project_files import code_version, files_of_project

NOW = datetime.now(timezone.utc)
TRIGGER = {"detect_duplicates": True, "use_history": True, "processing_mode": "concurrent"}
CONDITION = {"position": 1, "condition_name": "any"}
SERVICE = """
from python_udfs import Work, service

@service("ship")
def ship(work: Work) -> str:
    return "shipped"
"""


def put(folder: Path, name: str, *deliveries: str, document_type: str = "order") -> None:
    """A file of deliveries, whole at once; the id of a document stands before the first dash."""
    rows = [
        {
            "delivery_id": delivery,
            "received_at": (NOW - timedelta(minutes=1)).isoformat(),
            "transport": "RABBITMQ",
            "document_type": document_type,
            "guaranteed": True,
            "uuid": delivery.partition("-")[0],
            "document": "{}",
        }
        for delivery in deliveries
    ]
    written = folder / f".{name}"
    written.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    written.replace(folder / f"{name}.jsonl")


def statuses(runs: DbtRuns) -> dict[str, str]:
    rows = runs.rows("select delivery_id, status from {schema}.document_status")
    # each of them once
    assert len(rows) == len(dict(rows))
    return dict(rows)


def make_runs(spark: SparkSession, profiles_dir: Path, folder: Path) -> DbtRuns:
    runs = DbtRuns(spark, profiles_dir, folder)
    runs.seed("triggers", [{"trigger_name": "orders", **TRIGGER}])
    runs.seed(
        "trigger_conditions",
        [{"trigger_name": "orders", "document_type": "order", **CONDITION}],
    )
    (folder / "in").mkdir()
    return runs


# ---------- rounds in this process


class Warm:
    """A loop in the session of the tests, and what it has said."""

    def __init__(self, runs: DbtRuns) -> None:
        self.runs = runs
        self.folder = runs.folder / "in"
        self.said: list[str] = []
        self.stop = threading.Event()
        self.loop = Loop(
            runs.spark,
            find_project(runs.folder),
            runs.folder,
            TARGET,
            Sources([self.folder]),
            works=True,
            stop=self.stop,
            echo=self.said.append,
        )

    def round(self, status: int = 0) -> str:
        """A round, and its line; empty where it had nothing to say."""
        self.said.clear()
        assert self.loop.run(0, once=True) == status, self.said
        assert len(self.said) < 2
        assert "\n" not in "".join(self.said)
        return "".join(self.said)


@pytest.fixture(scope="module")
def warm(spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Warm:
    runs = make_runs(spark, profiles_dir, tmp_path_factory.mktemp("loop"))
    runs.add_udfs("shipping", SERVICE)
    found = Warm(runs)
    # the seeds, all views, and a run that finds nothing
    assert "nothing new" in found.round()
    return found


def test_each_round_decides_what_has_landed_since(warm: Warm) -> None:
    for number, deliveries in enumerate((["a"], ["a-2", "b"], ["b-2", "c"]), 1):
        put(warm.folder, f"file{number}", *deliveries)
        said = warm.round()
        assert f"deliveries: landed {len(deliveries)}, rejected 0, repeated 0" in said
        assert f"published run {number}: {len(deliveries)} taken" in said
    assert "orders: 1 DUPLICATE, 1 NEW" in said
    assert statuses(warm.runs) == {
        "a": "NEW",
        "a-2": "DUPLICATE",
        "b": "NEW",
        "b-2": "DUPLICATE",
        "c": "NEW",
    }


def test_the_log_of_dbt_has_the_nodes_of_a_round(warm: Warm) -> None:
    log = warm.runs.folder / "logs" / "dbt.log"
    before = log.stat().st_size
    put(warm.folder, "logged", "d")
    warm.round()
    with log.open(encoding="utf-8") as file:
        file.seek(before)
        assert "published_runs" in file.read()


def test_a_round_without_anything_new_starts_no_run(warm: Warm) -> None:
    """A run says that it has found nothing; a round that says nothing was none."""
    put(warm.folder, "one_more", "n")
    assert "1 taken" in warm.round()
    assert warm.round() == ""
    # whoever lands it
    warm.runs.land("deliveries", [{**delivery_row("n-2"), "uuid": "n"}])
    assert "1 DUPLICATE" in warm.round()
    assert warm.round() == ""


def delivery_row(name: str, document_type: str = "order") -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": NOW,
        "landed_at": NOW,
        "transport": "RABBITMQ",
        "document_type": document_type,
        "guaranteed": True,
        "uuid": name,
        "document": "{}",
    }


def test_a_file_that_cannot_be_read_keeps_no_other_from_landing(warm: Warm) -> None:
    (warm.folder / "list.txt").write_text("orders")
    (warm.folder / "broken.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(20))
    # its first bytes are right
    ids = "".join(f'{{"delivery_id": "{uuid4()}"}}\n' for _ in range(20_000))
    (warm.folder / "cut.jsonl.gz").write_bytes(gzip.compress(ids.encode())[:-100])
    put(warm.folder, "whole", "w")
    said = warm.round(status=1)
    assert "list.txt: the name has no known format" in said
    assert "broken.jsonl.gz cannot be read" in said
    assert "cut.jsonl.gz cannot be read" in said
    assert "landed 1" in said
    assert statuses(warm.runs)["w"] == "NEW"
    # told once
    assert warm.round() == ""
    # a file that is there again changes nothing
    (warm.folder / "whole.jsonl").touch()
    said = warm.round()
    assert "landed 0, rejected 0, repeated 1" in said
    assert " 0 taken, 0 decided" in said
    for name in ("list.txt", "broken.jsonl.gz", "cut.jsonl.gz"):
        (warm.folder / name).unlink()


def test_a_run_that_could_not_give_its_lock_back_stops_no_later_one(warm: Warm) -> None:
    """The process lives on: to everybody else its run would be at work for hours."""
    put(warm.folder, "locked", "l")
    warm.loop._tables.lock.take("cut-off", 7200)
    said = warm.round(status=1)
    assert "failed: exactly_once" not in said
    assert "run cut-off is at work" in said
    assert "l" not in statuses(warm.runs)
    assert "1 NEW" in warm.round()
    assert warm.round() == ""


def test_a_changed_seed_is_taken_up_and_services_are_called(warm: Warm) -> None:
    """What is open is a reason for a run only when its time has come."""
    warm.runs.seed(
        "triggers",
        [
            {"trigger_name": "orders", **TRIGGER},
            {"trigger_name": "parcels", **TRIGGER, "execution_timeout_ms": 20_000},
        ],
    )
    warm.runs.seed(
        "trigger_conditions",
        [
            {"trigger_name": "orders", "document_type": "order", **CONDITION},
            {
                **CONDITION,
                "trigger_name": "parcels",
                "document_type": "parcel",
                "service": "ship",
            },
            {
                **CONDITION,
                "position": 2,
                "condition_name": "letters",
                "trigger_name": "parcels",
                "document_type": "letter",
                "service": "somebody's",
            },
        ],
    )
    put(warm.folder, "parcels", "p", document_type="parcel")
    said = warm.round()
    assert "parcels: 1 NEW" in said
    assert said.endswith("services: 1 SUCCESS")
    assert "published run" in warm.round()
    assert warm.runs.rows("select count(*) from {schema}.open_documents") == [(0,)]
    assert warm.round() == ""

    put(warm.folder, "letters", "q", document_type="letter")
    assert "parcels: 1 NEW" in warm.round()
    # open, and nothing that a run could do for it
    assert warm.round() == ""
    started = datetime.now(timezone.utc)
    event = {"execution_id": "e", "delivery_id": "q", "trigger_name": "parcels", "attempt": 1}
    times = {"started_at": started, "recorded_at": started}
    warm.runs.land(
        "trigger_executions", [{**event, **times, "service": "somebody's", "event": "STARTED"}]
    )
    assert "published run" in warm.round()
    time.sleep(max(0, 21 - (datetime.now(timezone.utc) - started).total_seconds()))
    assert "IN_DOUBT" in warm.round()
    assert statuses(warm.runs)["q/recovery-1"] == "IN_DOUBT"


def test_services_are_called_where_a_model_beside_fails(warm: Warm) -> None:
    model = warm.runs.own("models") / "of_mine.sql"
    model.write_text("select * from nowhere")
    put(warm.folder, "more", "s", document_type="parcel")
    said = warm.round(status=1)
    assert "parcels: 1 NEW" in said
    assert "services: 1 SUCCESS; failed: of_mine: " in said
    model.unlink()
    assert "published run" in warm.round()


def test_a_test_that_fails_after_publication_is_no_reason_to_build_all_again(warm: Warm) -> None:
    (warm.runs.own("tests") / "of_mine.sql").write_text("select 1 as found")
    put(warm.folder, "before", "t")
    said = warm.round(status=1)
    assert "orders: 1 NEW" in said
    assert "failed: of_mine: " in said
    put(warm.folder, "after", "u")
    assert "failed" not in warm.round()
    assert statuses(warm.runs)["u"] == "NEW"
    warm.runs.give_back("tests")


def test_a_signal_ends_the_round_behind_the_present_step(warm: Warm) -> None:
    put(warm.folder, "last", "z")
    warm.stop.set()
    try:
        assert warm.loop.round() == Round()
        assert warm.loop.run(0) == 0
    finally:
        warm.stop.clear()
    assert "z" not in statuses(warm.runs)
    assert "1 NEW" in warm.round()


# ---------- a process


def start(runs: DbtRuns, *options: str) -> subprocess.Popen[bytes]:
    """The command, with a group of its own; what it says is in a file."""
    with (runs.folder / "loop.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "dbt_exactly_once.cli", "run", "--every", "500ms"),
                *("--land", "in", "--project-dir", ".", *options),
            ],
            cwd=runs.folder,
            env={**os.environ, "PYTHONPATH": str(PROJECT_FOLDER)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> Iterator[DbtRuns]:
    found = make_runs(spark, profiles_dir, tmp_path)
    yield found
    print(said(found))


def said(runs: DbtRuns) -> str:
    return (runs.folder / "loop.log").read_text()


def wait_for(found: Callable[[], bool], process: subprocess.Popen[bytes], runs: DbtRuns) -> None:
    deadline = time.monotonic() + 300
    while not found():
        assert process.poll() is None, said(runs)
        assert time.monotonic() < deadline, said(runs)
        time.sleep(0.2)


def test_a_loop_goes_on_when_a_model_is_mended_and_ends_cleanly(runs: DbtRuns) -> None:
    model = runs.own("models") / "detect" / "decisions.sql"
    text = model.read_text()
    process = start(runs)
    put(runs.folder / "in", "a", "a")
    wait_for(lambda: "published run 1: 1 taken" in said(runs), process, runs)
    model.write_text(text.replace("select", "selekt"))
    put(runs.folder / "in", "b", "a-2", "b")
    wait_for(lambda: "tries again in" in said(runs), process, runs)
    told = next(line for line in said(runs).splitlines() if "tries again in" in line)
    assert "failed: decisions: " in told
    assert "landed 2" in said(runs)
    model.write_text(text)
    wait_for(lambda: "published run 2: 2 taken" in said(runs), process, runs)
    put(runs.folder / "in", "c", "c")
    # it has begun with it
    wait_for(lambda: "landed 1" in landed_since(runs, "c"), process, runs)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0
    assert said(runs).endswith("stopped\n")
    assert statuses(runs).items() >= {"a": "NEW", "a-2": "DUPLICATE", "b": "NEW"}.items()
    # nothing else was said
    assert all(line[10] == "T" for line in said(runs).splitlines()[:-1])
    # what a run has begun it has ended
    assert not lock_and_branches(runs)


def landed_since(runs: DbtRuns, name: str) -> str:
    count = runs.rows(f"select count(*) from {{landing}}.deliveries where delivery_id = '{name}'")
    return f"landed {count[0][0]}"


def lock_and_branches(runs: DbtRuns) -> list[str]:
    tables = {row[1] for row in runs.rows("show tables in {schema}")}
    refs = runs.rows("select name from {schema}.document_status.refs")
    return [name for name in tables if name == "run_lock"] + [
        name for (name,) in refs if name.startswith("run_")
    ]


def test_a_killed_loop_loses_nothing_and_doubles_nothing(runs: DbtRuns) -> None:
    process = start(runs)
    put(runs.folder / "in", "a", "a", "b")
    wait_for(lambda: "published run 1: 2 taken" in said(runs), process, runs)
    put(runs.folder / "in", "b", "a-2", "c")
    wait_for(lambda: len(lock_and_branches(runs)) == 2, process, runs)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert statuses(runs) == {"a": "NEW", "b": "NEW"}
    put(runs.folder / "in", "c", "c-2", "d")
    process = start(runs, "--once")
    assert process.wait(timeout=300) == 0, said(runs)
    # it does not know what the other has landed
    assert "landed 2, rejected 0, repeated 4" in said(runs)
    assert statuses(runs) == {
        "a": "NEW",
        "b": "NEW",
        "a-2": "DUPLICATE",
        "c": "NEW",
        "c-2": "DUPLICATE",
        "d": "NEW",
    }
    assert len(runs.rows("select delivery_id from {landing}.deliveries")) == 6
    assert not lock_and_branches(runs)


def test_a_round_that_fails_is_repeated_after_ever_longer() -> None:
    assert [pause_after(10, failures) for failures in (0, 1, 2, 5, 10_000)] == [
        10,
        20,
        40,
        300,
        300,
    ]
    assert [pause_after(0, failures) for failures in (0, 1, 3)] == [0, 2, 8]
    # never more often than the others
    assert pause_after(3600, 4) == 3600


# ---------- files


def test_a_file_is_new_until_it_has_landed_and_when_it_changes(tmp_path: Path) -> None:
    folder, single = tmp_path / "in", tmp_path / "one.jsonl"
    folder.mkdir()
    for path in (single, folder / "b.jsonl", folder / "a.jsonl", folder / ".c", folder / "_d"):
        path.write_text("1")
    (folder / "below").mkdir()
    sources = Sources([folder, single])
    assert [path.name for path in sources.new_files()] == ["a.jsonl", "b.jsonl", "one.jsonl"]
    for path, look in sources.new_files().items():
        sources.settle(path, look)
    assert sources.new_files() == {}
    single.write_text("22")
    (folder / "a.jsonl").unlink()
    assert [*sources.new_files()] == [single]
    # another one of that name
    (folder / "a.jsonl").write_text("1")
    assert [*sources.new_files()] == [folder / "a.jsonl", single]
    with pytest.raises(ExactlyOnceError, match=r"nowhere is not there: name files, or folders"):
        Sources([tmp_path / "nowhere"])


def test_a_project_is_another_when_one_of_its_files_is(tmp_path: Path) -> None:
    for place in ("models/a.sql", "seeds/a.csv", "python_udfs/a.py", "dbt_project.yml"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("name: a")
    package = tmp_path / "dbt_packages" / "exactly_once"
    (package / "parts").mkdir(parents=True)
    (package / "dbt_project.yml").write_text("model-paths: [parts]")
    (package / "parts" / "b.sql").write_text("select 1")
    before = files_of_project(tmp_path, tmp_path)
    for changed in (
        tmp_path / "models" / "a.sql",
        tmp_path / "seeds" / "a.csv",
        tmp_path / "python_udfs" / "a.py",
        package / "parts" / "b.sql",
        tmp_path / "profiles.yml",
        tmp_path / "macros" / "new.sql",
    ):
        changed.parent.mkdir(exist_ok=True)
        changed.write_text("another text")
        after = files_of_project(tmp_path, tmp_path)
        assert after != before, changed
        before = after
    # what runs and Python leave there
    for place in ("target/manifest.json", "logs/dbt.log", "python_udfs/__pycache__/a.pyc"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("{}")
    assert files_of_project(tmp_path, tmp_path) == before


def test_the_code_of_a_project_is_another_when_that_of_a_package_is(tmp_path: Path) -> None:
    """A table or view that an earlier version of the package has made is made again."""
    package = tmp_path / "dbt_packages" / "exactly_once"
    for place in (tmp_path, package):
        (place / "models").mkdir(parents=True)
        (place / "dbt_project.yml").write_text("name: a")
        (place / "models" / "a.sql").write_text("select 1")
    before = code_version(tmp_path)
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "a.csv").write_text("a\n1\n")
    assert code_version(tmp_path) == before
    (package / "models" / "a.sql").write_text("select 1 as a, 2 as b")
    assert code_version(tmp_path) != before


def test_yaml_and_functions_are_files_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: a")
    before = files_of_project(tmp_path, tmp_path)
    for place in ("tests/a.yml", "tests/a.yaml", "functions/a.sql", "functions/a.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("text")
        after = files_of_project(tmp_path, tmp_path)
        assert after != before, place
        before = after
    # tests of Python, in the same folder
    (tmp_path / "tests" / "test_a.py").write_text("text")
    assert files_of_project(tmp_path, tmp_path) == before
