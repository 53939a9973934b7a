"""`exactly-once check` tells what a run would stumble over, without Spark.

That it finds the same wrong values in seeds as a run is tested in test_seeds.py.
"""

from __future__ import annotations

import csv
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from dbt_runs import PROJECT_FOLDER

from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.check.findings import Kind
from dbt_exactly_once.check.installed import check_versions
from dbt_exactly_once.cli import main
from dbt_exactly_once.landing.judging import contract
from dbt_exactly_once.landing.landed_tables import read_landed_tables

HOOKS = """
from python_udfs import resolver, service

@service("letters.send")
def send(work):
    pass
"""
SPARK = "spark.sql.catalog.lake"
# of its own is what only this machine tells: versions, and where Java is
OF_THIS_MACHINE = 2

Check = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with this one as its package; its lake is a folder that is not there yet."""
    (tmp_path / "shop" / "dbt_packages").mkdir(parents=True)
    shop = tmp_path / "shop"
    (shop / "dbt_packages" / "exactly_once").symlink_to(PROJECT_FOLDER)
    project = {"name": "shop", "profile": "exactly_once", "vars": {}}
    (shop / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (shop / "seeds").mkdir()
    write_seed(shop, "triggers", {"trigger_name": "letters", "key": "upper(uuid)"})
    condition = {"trigger_name": "letters", "position": "1", "condition_name": "all"}
    condition |= {"document_type": "letter", "service": "letters.send"}
    write_seed(shop, "trigger_conditions", {**condition, "filter": "%to/city% = 'Rome'"})
    (shop / "python_udfs").mkdir()
    (shop / "python_udfs" / "letters.py").write_text(HOOKS)
    write_profile(shop)
    return shop


def write_seed(folder: Path, name: str, *rows: Mapping[str, str]) -> None:
    with (PROJECT_FOLDER / "seeds" / f"{name}.csv").open(encoding="utf-8") as file:
        columns = next(csv.reader(file))
    with (folder / "seeds" / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def write_profile(folder: Path, **output: object) -> None:
    lake = folder / "lake"
    local = {
        "type": "spark",
        "method": "session",
        "schema": "shop",
        "host": "NA",
        "server_side_parameters": {
            "spark.sql.defaultCatalog": "lake",
            f"{SPARK}.type": "jdbc",
            f"{SPARK}.uri": f"jdbc:sqlite:{lake}/catalog.db",
            f"{SPARK}.warehouse": str(lake / "warehouse"),
        },
    }
    profile = {"exactly_once": {"target": "local", "outputs": {"local": {**local, **output}}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))


def write_settings(folder: Path, **settings: str) -> None:
    """A profile whose catalog has these settings, and files that no check knows of."""
    named = {f"{SPARK}.{name.replace('_', '-')}": value for name, value in settings.items()}
    parameters = {"spark.sql.defaultCatalog": "lake", f"{SPARK}.warehouse": "s3://lake/", **named}
    write_profile(folder, server_side_parameters=parameters)


@pytest.fixture
def check(folder: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """The command's status, and what it says but for this machine's versions."""

    def run() -> tuple[int, list[str]]:
        status = main(["check", "--project-dir", str(folder), "--profiles-dir", str(folder)])
        return status, capsys.readouterr().out.splitlines()[OF_THIS_MACHINE:]

    return run


OK, WRONG, LEFT = "ok            ", "wrong         ", "left to a run "
TRANSPORTS = len((PROJECT_FOLDER / "seeds" / "transports.csv").read_text().splitlines()) - 1
SEEDS_ARE_RIGHT = f"{OK}seeds: 1 trigger, 1 trigger_condition, {TRANSPORTS} transports"
PROFILE_IS_RIGHT = f"{OK}profiles.yml: method session, schema shop"
COLUMNS_ARE_LEFT = (
    f"{LEFT}the columns that filters and keys name, and whether the lake has these seeds"
)


def test_a_project_that_is_right(folder: Path, check: Check) -> None:
    assert check() == (
        0,
        [
            PROFILE_IS_RIGHT,
            f"{OK}{SPARK}.uri: {folder}/lake/catalog.db, which a run makes",
            f"{OK}{SPARK}.warehouse: {folder}/lake/warehouse, which a run makes",
            f"{OK}python_udfs: 3 resolvers, 0 resource monitors, 1 service",
            SEEDS_ARE_RIGHT,
            COLUMNS_ARE_LEFT,
        ],
    )
    assert not (folder / "lake").exists(), "a check makes nothing"


def test_no_spark_is_started(folder: Path) -> None:
    """dbt imports pyspark with its adapter; no session and no context of it is made."""
    told = (
        "import pyspark; from dbt_exactly_once.cli import main; "
        f"main(['check', '--project-dir={folder}', '--profiles-dir={folder}']); "
        "print(pyspark.SparkContext._gateway, pyspark.SparkContext._active_spark_context)"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nNone None\n"), done.stdout


def test_every_wrong_value_is_told_at_once(folder: Path, check: Check) -> None:
    asks = {"trigger_name": "asks", "resolver": "letters.check", "enabled": "yes"}
    write_seed(folder, "triggers", asks, {"trigger_name": "keyed", "key": "uuid ||"})
    condition = {"position": "1", "condition_name": "all", "document_type": "letter"}
    write_seed(
        folder,
        "trigger_conditions",
        {**condition, "trigger_name": "asks", "service": "letters.sned"},
        {**condition, "trigger_name": "keyed", "filter": "%weight% > 5"},
        {**condition, "trigger_name": "kyed"},
    )
    status, lines = check()
    assert status == 1
    assert lines[4:] == [
        f"{WRONG}seed triggers, trigger asks: enabled is yes: use true or false",
        f"{WRONG}seed triggers, trigger asks: resolver is letters.check, which no module of "
        "python_udfs registers: use examples.jms_delivery_count or examples.order_exists or "
        "examples.orders_exist or none",
        f"{WRONG}seed trigger_conditions, condition 1 of trigger kyed: no such trigger in the "
        "seed triggers: add it there or correct the name",
        f"{WRONG}seed triggers, trigger keyed: the key uuid || cannot be used, correct it: "
        "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601 "
        "(line 1, pos 7)",
        f"{WRONG}seed trigger_conditions, condition 1 of trigger keyed: the filter %weight% > "
        "5 cannot be used, correct it: the untyped field %weight% is compared with a number: give "
        "it a type, as in %weight:double%",
        f"{LEFT}whether somebody works for letters.sned: no function of python_udfs and no "
        "model has the name",
        COLUMNS_ARE_LEFT,
    ]


def test_a_seed_without_rows_or_columns_is_told(folder: Path, check: Check) -> None:
    write_seed(folder, "trigger_conditions")
    (folder / "seeds" / "triggers.csv").write_text("trigger_name,enabled\nletters,true\n")
    status, lines = check()
    assert status == 1
    assert [line for line in lines if line.startswith("wrong")] == [
        f"{WRONG}{folder}/seeds/triggers.csv has no column api, acknowledgement_mode, "
        "processing_mode, detect_duplicates, use_history, history_time_to_live_ms, resolver, "
        "suspend_on_preprocessing_error, resource_monitor, max_retry_attempts, retry_interval_ms, "
        "on_retry_failure, execution_timeout_ms, queue_capacity, start_from: add it, a blank means "
        "the default where there is one, and run `dbt seed`",
        f"{WRONG}seed trigger_conditions is empty: fill {folder}/seeds/trigger_conditions.csv and "
        "run `dbt seed`",
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (b"letters,a,b,c,d" + b"," * 20, "has 25 cells in line 3, and a header of 18: put a cell"),
        (b"l\xe9tters", "is not UTF-8 at line 3: save it as UTF-8"),
    ],
)
def test_a_seed_that_is_no_table_is_told_with_its_file(
    folder: Path, check: Check, row: bytes, why: str
) -> None:
    file = folder / "seeds" / "triggers.csv"
    file.write_bytes(file.read_bytes() + row + b"\n")
    status, lines = check()
    assert status == 1
    (told,) = [line for line in lines if str(file) in line]
    assert why in told


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        # agate reads the second as use_history_2, so one of the two settings would be ignored
        (
            lambda text: text.replace("key\n", "key,Use_History\n").replace(",\n", ",,\n"),
            "has column use_history more than once: keep one",
        ),
        (
            lambda text: text.replace(",", ";"),
            "has a column 'trigger_name;enabled;",
        ),
        (lambda text: text.replace(",key\n", ", key\n"), "has a column ' key': use letters"),
        (lambda text: "", "is empty: write a line with its columns"),
    ],
)
def test_a_header_that_is_none_of_columns_is_told(
    folder: Path, check: Check, change: Callable[[str], str], problem: str
) -> None:
    file = folder / "seeds" / "triggers.csv"
    file.write_text(change(file.read_text()))
    status, told = check()
    assert status == 1
    assert any(f"{WRONG}{file} {problem}" in line for line in told), told


def test_a_header_may_be_in_capitals(folder: Path, check: Check) -> None:
    file = folder / "seeds" / "triggers.csv"
    header, _, rows = file.read_text().partition("\n")
    file.write_text(f"{header.upper()}\n{rows}")
    assert check()[0] == 0


def test_a_module_that_cannot_be_imported_is_told(folder: Path, check: Check) -> None:
    (folder / "python_udfs" / "broken.py").write_text("import no_such_module\n")
    status, lines = check()
    assert status == 1
    assert lines[3:] == [
        f"{WRONG}module python_udfs.broken cannot be used: ModuleNotFoundError: No module "
        "named 'no_such_module'; correct it or move it out of python_udfs/",
        f"{LEFT}the seeds, since python_udfs cannot be loaded",
    ]


def test_a_wrong_profile_is_told_with_all_else(folder: Path, check: Check) -> None:
    (folder / "profiles.yml").unlink()
    status, lines = check()
    assert status == 1
    assert lines[0] == (
        f"{WRONG}there is no {folder}/profiles.yml, which says how Spark starts and where "
        "the lake is: copy profiles.example.yml there, or name its folder with --profiles-dir"
    )
    assert SEEDS_ARE_RIGHT in lines


# ---------- the catalog


def test_a_catalog_is_asked_whether_it_answers(folder: Path, check: Check) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        for kind, uri, told in (
            ("rest", f"http://127.0.0.1:{port}/iceberg", f"http://127.0.0.1:{port}"),
            ("jdbc", f"jdbc:postgresql://127.0.0.1:{port}/lake", f"postgresql://127.0.0.1:{port}"),
            (
                "hive",
                f"thrift://127.0.0.1:1,thrift://127.0.0.1:{port}",
                f"thrift://127.0.0.1:{port}",
            ),
        ):
            write_settings(folder, type=kind, uri=uri)
            status, lines = check()
            assert lines[1] == f"{OK}the catalog lake answers at {told}"
            assert status == 0
    status, lines = check()
    assert status == 1
    assert lines[1] == (
        f"{WRONG}the catalog lake cannot be reached at thrift://127.0.0.1:1: Connection refused"
    )
    # the password is not shown
    write_settings(folder, type="jdbc", uri="jdbc:postgresql://me:secret@no-such-host.invalid/x")
    assert check()[1][1].startswith(
        f"{WRONG}the catalog lake cannot be reached at postgresql://no-such-host.invalid:5432:"
    )


def test_what_cannot_be_asked_is_left_to_a_run(folder: Path, check: Check) -> None:
    write_settings(folder, type="glue")
    status, lines = check()
    assert status == 0
    assert lines[1] == (f"{LEFT}whether the catalog lake answers, since no address of it is known")
    write_settings(folder, catalog_impl="com.example.Catalog", uri="example:lake")
    assert check()[1][1] == (
        f"{LEFT}whether the catalog lake answers, since its address is of a kind not known here"
    )


def test_a_lake_that_cannot_be_made_is_told(folder: Path, check: Check) -> None:
    (folder / "lake").write_text("a file")
    status, lines = check()
    assert status == 1
    assert lines[1:3] == [
        f"{WRONG}{SPARK}.uri: {folder}/lake cannot be made, since {folder}/lake is a file",
        f"{WRONG}{SPARK}.warehouse: {folder}/lake/warehouse cannot be made, since "
        f"{folder}/lake is a file",
    ]


def test_a_place_that_cannot_be_looked_at_is_told_with_all_else(folder: Path, check: Check) -> None:
    """As in a folder that this user may not read."""
    place = f"{folder}/{'x' * 300}"
    write_settings(folder, type="jdbc", uri=f"jdbc:sqlite:{place}", warehouse=str(folder))
    status, lines = check()
    assert status == 1
    assert lines[1] == (
        f"{WRONG}nobody can tell whether the catalog {place} is there (File name too long): "
        "correct its path, or let this user read its folder"
    )
    assert SEEDS_ARE_RIGHT in lines
    write_settings(folder, type="hadoop", warehouse=place)
    assert (
        f"{WRONG}{SPARK}.warehouse: {place} cannot be looked at: File name too long" in check()[1]
    )


def test_a_lost_catalog_and_an_unknown_one_are_told(folder: Path, check: Check) -> None:
    kept = folder / "lake" / "warehouse" / "shop" / "runs" / "metadata" / "v1.metadata.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    status, lines = check()
    assert status == 1
    assert lines[1] == (
        f"{WRONG}the catalog {folder}/lake/catalog.db is missing while "
        f"{folder}/lake/warehouse has tables: restore it from a copy; to start with an empty lake, "
        "move that folder away"
    )
    write_settings(folder, type="jdcb")
    assert check()[1][1] == (
        f"{WRONG}profiles.yml: {SPARK}.type is jdcb, Iceberg knows bigquery, glue, hadoop, "
        "hive, jdbc, nessie, rest"
    )


def test_a_server_needs_no_java_here(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    place = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    needed = f"{WRONG}Spark needs Java 17 or later, and JAVA_HOME is {tmp_path}, which has no"
    without = f"{LEFT}filters, keys and times in the seeds, since there is no Java"
    assert main(["check", *place]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(needed)
    assert lines[-2:] == [without, COLUMNS_ARE_LEFT]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        write_profile(folder, method="thrift", host="127.0.0.1", port=port, user="dbt")
        assert main(["check", *place]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        f"{OK}profiles.yml: method thrift, schema shop",
        f"{OK}the server answers at thrift://127.0.0.1:{port}",
    ]
    assert lines[-2:] == [without, COLUMNS_ARE_LEFT]


# ---------- versions


def test_packages_that_do_not_fit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(*lines: str) -> None:
        place = tmp_path / "dbt_exactly_once-0.1.0.dist-info"
        place.mkdir(exist_ok=True)
        head = ["Metadata-Version: 2.1", "Name: dbt-exactly-once", "Version: 0.1.0"]
        (place / "METADATA").write_text("\n".join([*head, *lines, ""]))

    monkeypatch.syspath_prepend(str(tmp_path))
    install("Requires-Python: >=3.10", "Requires-Dist: pyspark==4.1.*", "Requires-Dist: click")
    (found,) = check_versions()
    assert found.kind is Kind.RIGHT
    assert found.text.startswith(f"Python {sys.version.split()[0]}, dbt-core 1.")

    install(
        "Requires-Python: >=3.99",
        "Requires-Dist: dbt-core<1.1,>=1.0",
        "Requires-Dist: no-such-package>=2",
        "Requires-Dist: neither; extra == 'rabbitmq'",
    )
    python, dbt, none = (finding.text for finding in check_versions())
    assert python == f"Python is {sys.version.split()[0]}, needed is >=3.99"
    assert dbt.startswith("dbt-core is 1.")
    assert dbt.endswith(": pip install 'dbt-core<1.1,>=1.0'")
    assert none == "no-such-package is not installed: pip install 'no-such-package>=2'"
    assert {finding.kind for finding in check_versions()} == {Kind.WRONG}


def test_an_iceberg_for_another_spark_is_told(folder: Path, check: Check) -> None:
    jar = "org.apache.iceberg:iceberg-spark-runtime-{}_2.13:1.12.0"
    for version, expected in (("3.5", 1), ("4.1", 0)):
        write_profile(
            folder,
            server_side_parameters={
                "spark.jars.packages": jar.format(version),
                f"{SPARK}.type": "glue",
            },
        )
        status, lines = check()
        assert status == expected
        assert (
            f"{WRONG}profiles.yml: spark.jars.packages has Iceberg for Spark 3.5, installed "
            "is 4.1: name iceberg-spark-runtime-4.1_2.13"
        ) in lines or version == "4.1"


def test_columns_that_a_seed_lacks_are_named(folder: Path, check: Check) -> None:
    (folder / "seeds" / "trigger_conditions.csv").write_text("document_type\nletter\n")
    (folder / "seeds" / "transports.csv").write_text("api\nMSG\n")
    status, lines = check()
    assert status == 1
    wanted = {
        "trigger_conditions": "trigger_name, position, condition_name, filter, service",
        "transports": "transport, counts_deliveries, first_delivery_count",
    }
    assert [line for line in lines if line.startswith("wrong")] == [
        f"{WRONG}{folder}/seeds/{name}.csv has no column {columns}: add it, a blank means the "
        "default where there is one, and run `dbt seed`"
        for name, columns in wanted.items()
    ]


def test_a_seed_may_stand_in_a_folder_of_its_own(folder: Path, check: Check) -> None:
    """As dbt finds it, also where dbt_project.yml names another folder for seeds."""
    project = yaml.safe_load((folder / "dbt_project.yml").read_text())
    project["seed-paths"] = ["data"]
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    own = folder / "data" / "own"
    own.mkdir(parents=True)
    (own / "transports.csv").write_text(
        "transport,api,counts_deliveries,first_delivery_count\nMYBUS,MSG,true,0\n"
    )
    found = find_project(folder)
    assert found.seed_file("transports") == own / "transports.csv"
    assert "'MYBUS'" in contract(found, read_landed_tables(found)["deliveries"])[0]
